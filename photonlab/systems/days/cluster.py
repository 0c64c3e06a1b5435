"""Units on the workers of a Dask cluster, which must see the files and the output folder under the same paths."""

from photonlab.errors import UserError
from photonlab.systems.days import unit as units


def run(tasks, out, address):
    """Do tasks; parameters and results as for `photonlab.systems.days.local.run`.

    Parameters
    ----------
    tasks : iterable of photonlab.systems.days.many.Task
    out : Path
    address : str
        Of the scheduler, such as tcp://host:8786.

    Yields
    ------
    tuple of (Task, bool, dict or str, bool)
    """
    try:
        import distributed
    except ImportError:
        raise UserError("--scheduler needs Dask: pip install 'photonlab[dask]'") from None
    try:
        client = distributed.Client(address, timeout=10)
    except (OSError, TimeoutError, ValueError) as error:
        raise UserError(f"{address}: no Dask scheduler answers: {error}") from None
    with client:
        pending = {}

        def submit(task):
            # a worker that dies has the scheduler send its unit to another one
            future = client.submit(units.attempt, units.as_task(task.unit), str(out), task.attempt, pure=False)
            pending[future.key] = task
            return future

        futures = distributed.as_completed([submit(task) for task in tasks], raise_errors=False)
        for future in futures:
            task = pending.pop(future.key)
            ended = future.result() if future.status == "finished" else (False, str(future.exception()), True)
            if (yield task, *ended):
                futures.add(submit(task))
