"""Asks for a very large answer, reads a little of it and no more, and kills a worker that runs a part of it. Waits
until the query runs on no worker any more, reads on, and prints the worker's address and the error that the rows end with.

usage: unread_loss.py MYSQL_PORT WORKER_ADDRESS=PID...
"""

import os
import signal
import sys
import time
import urllib.parse

import pymysql

port = int(sys.argv[1])
pids = dict(worker.split("=") for worker in sys.argv[2:])
other = pymysql.connect(host="127.0.0.1", port=port, user="root")


def busy():
    with other.cursor() as cursor:
        cursor.execute("SELECT url FROM tarn.system.workers WHERE state = 'active' AND running_tasks > 0")
        return [urllib.parse.urlsplit(url).netloc for (url,) in cursor.fetchall()]


def until(what, holds, seconds):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"did not come to be within {seconds} s: {what}")
        time.sleep(0.1)


connection = pymysql.connect(
    host="127.0.0.1", port=port, user="root", cursorclass=pymysql.cursors.SSCursor, database="tpch"
)
cursor = connection.cursor()
cursor.execute("SELECT a.*, b.* FROM lineitem a JOIN lineitem b ON a.l_linenumber <> b.l_linenumber + 20 WHERE b.l_orderkey < 2000")
for _ in range(100):
    assert cursor.fetchone() is not None
until("the workers report their tasks", busy, 60)
killed = busy()[0]
os.kill(int(pids[killed]), signal.SIGKILL)
until("no task is left", lambda: not busy(), 120)
try:
    while cursor.fetchone() is not None:
        pass
    print(killed, "the whole answer")
except pymysql.err.MySQLError as error:
    print(killed, error.args[1])
