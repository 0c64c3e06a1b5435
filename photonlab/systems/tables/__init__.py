"""Tables from a replay: kernels write rows into columns, another thread turns those into Arrow, pandas or Parquet."""
