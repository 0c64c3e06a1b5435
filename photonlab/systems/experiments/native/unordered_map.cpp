// std::unordered_map under the work of photonlab/systems/map_work.py: whole arrays of keys in one call, so that the
// call costs nothing. Compiled when the notebook runs, if a C++ compiler is there (native_map.py).

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <unordered_map>

#if defined(__APPLE__)
#include <malloc/malloc.h>
#define USABLE(p) malloc_size(p)
#else
#include <malloc.h>
#define USABLE(p) malloc_usable_size(p)
#endif

using u64 = std::uint64_t;
using Map = std::unordered_map<u64, u64>;

static std::size_t allocated = 0;

template <class T>
struct Counting {
    using value_type = T;
    Counting() = default;
    template <class U>
    Counting(const Counting<U>&) {}
    T* allocate(std::size_t n) {
        void* block = std::malloc(n * sizeof(T));
        if (block == nullptr) throw std::bad_alloc();
        allocated += USABLE(block);
        return static_cast<T*>(block);
    }
    void deallocate(T* block, std::size_t) {
        allocated -= USABLE(block);
        std::free(block);
    }
    bool operator==(const Counting&) const { return true; }
    bool operator!=(const Counting&) const { return false; }
};

extern "C" {

int hash_is_identity() { return std::hash<u64>()(0x123456789abcdef0u) == 0x123456789abcdef0u; }

Map* map_make(u64 members) {
    Map* map = new Map();
    map->reserve(members);
    return map;
}

void map_free(Map* map) { delete map; }

u64 map_size(Map* map) { return map->size(); }

u64 map_insert(Map* map, const u64* keys, u64 count) {
    u64 total = 0;
    for (u64 i = 0; i < count; i++) total += map->insert_or_assign(keys[i], keys[i] + 1).second;
    return total;
}

u64 map_find(Map* map, const u64* keys, u64 count) {
    u64 total = 0;
    for (u64 i = 0; i < count; i++) {
        auto at = map->find(keys[i]);
        if (at != map->end()) total += at->second;
    }
    return total;
}

u64 map_churn(Map* map, const u64* gone, const u64* come, u64 count) {
    u64 total = 0;
    for (u64 i = 0; i < count; i++) {
        auto at = map->find(gone[i]);
        if (at != map->end()) {
            total += at->second;
            map->erase(at);
        }
        map->insert_or_assign(come[i], come[i] + 1);
    }
    return total;
}

// Bytes that malloc gives for a map of these keys, nodes and buckets, without its bookkeeping in front of each block.
u64 map_bytes(const u64* keys, u64 count) {
    std::unordered_map<u64, u64, std::hash<u64>, std::equal_to<u64>, Counting<std::pair<const u64, u64>>> map;
    map.reserve(count);
    for (u64 i = 0; i < count; i++) map[keys[i]] = keys[i] + 1;
    return allocated;
}
}
