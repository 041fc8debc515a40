"""Asks for a very large answer, reads a little of it, waits until the server stops sending, and prints by how many bytes
the server's memory grew meanwhile. Then it goes away.

usage: slow_client.py MYSQL_PORT COORDINATOR_PID
"""

import sys
import time

import pymysql

port, pid = int(sys.argv[1]), sys.argv[2]


def resident():
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * 4096


connection = pymysql.connect(
    host="127.0.0.1", port=port, user="root", cursorclass=pymysql.cursors.SSCursor, database="tpch"
)
with connection.cursor() as cursor:
    cursor.execute("SELECT count(*) FROM lineitem")
    cursor.fetchall()
before = resident()
cursor = connection.cursor()
cursor.execute("SELECT a.*, b.* FROM lineitem a JOIN lineitem b ON a.l_linenumber <> b.l_linenumber + 20 WHERE b.l_orderkey < 2000")
for _ in range(100):
    assert cursor.fetchone() is not None
# Unread for as long as the server's memory still moves.
largest, still = resident(), 0
while still < 20:
    time.sleep(0.1)
    now = resident()
    still = still + 1 if now <= largest * 1.01 else 0
    largest = max(largest, now)
print(largest - before)
connection._force_close()
