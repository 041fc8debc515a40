"""Starts `tarn` processes on free loopback ports, and talks to them by Flight SQL."""

import contextlib
import os
import subprocess
import time
from pathlib import Path

import adbc_driver_flightsql.dbapi as flight_sql


def default_binary():
    return os.environ.get("TARN_BENCH_BIN", "target/release/tarn")


def generate_tpch(binary, data, scale):
    """Makes the TPC-H tables at `scale` in the embedded catalog of `data`, unless they are there."""
    command = [binary, "generate", "tpch", "--scale", f"{scale:g}", "--data-dir", str(data)]
    subprocess.run(command, check=True)


def data_files(data, database):
    """The paths of the data files of each table's current snapshot."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("lake", uri=f"sqlite:///{data}/catalog.db", warehouse=f"file://{data}/warehouse")
    return {
        name[-1]: [task.file.file_path.removeprefix("file://") for task in catalog.load_table(name).scan().plan_files()]
        for name in catalog.list_tables(database)
    }


class Tarn:
    """`addresses`: by protocol; `flight` is the one that queries go to."""

    def __init__(self, addresses, pid):
        self.pid = pid
        self.addresses = addresses
        self.connection = flight_sql.connect(f"grpc://{addresses['flight']}", db_kwargs={"username": "root", "password": ""}, autocommit=True)

    def use(self, database):
        """Makes it the database of the queries that follow."""
        with self.connection.cursor() as cursor:
            cursor.execute(f"USE {database}")
            cursor.fetchall()

    def query(self, sql):
        """The answer as an Arrow table."""
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetch_arrow_table()


@contextlib.contextmanager
def start(binary, data, topology, threads):
    """`topology`: `server` for one process, or a number of worker processes."""
    env = os.environ | {
        "TARN_DATA_DIR": str(data),
        "TARN_COORDINATOR_MYSQL_LISTEN": "127.0.0.1:0",
        "TARN_COORDINATOR_FLIGHT_LISTEN": "127.0.0.1:0",
        "TARN_COORDINATOR_HTTP_LISTEN": "127.0.0.1:0",
        "TARN_WORKER_LISTEN": "127.0.0.1:0",
        "TARN_WORKER_HTTP_LISTEN": "127.0.0.1:0",
        "TARN_QUERY_TARGET_PARTITIONS": str(threads),
        "TARN_LOG_FILTER": "warn",
    }
    processes = []
    try:
        command = "server" if topology == "server" else "coordinator"
        coordinator, addresses = launch(binary, command, env)
        processes.append(coordinator)
        tarn = Tarn(addresses, coordinator.pid)
        if topology != "server":
            for n in range(int(topology)):
                own = env | {
                    "TARN_WORKER_COORDINATOR": f"http://{addresses['http']}",
                    "TARN_DATA_DIR": str(Path(data) / f"worker-{n}"),
                    "TARN_WORKER_MEMORY": "5GiB",
                }
                processes.append(launch(binary, "worker", own)[0])
            wait_for_workers(tarn, int(topology))
        yield tarn
        tarn.connection.close()
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def launch(binary, command, env):
    process = subprocess.Popen([binary, command], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if line.startswith("ready "):
            return process, dict(pair.split("=", 1) for pair in line.split()[1:])
    raise RuntimeError(f"`{binary} {command}` ended before it was ready")


def wait_for_workers(tarn, n):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        rows = tarn.query("SELECT count(*) AS n FROM tarn.system.workers WHERE state = 'active'").to_pylist()
        if rows[0]["n"] == n:
            return
        time.sleep(0.1)
    raise RuntimeError(f"{n} workers did not register within 30 s")
