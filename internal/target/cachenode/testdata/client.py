"""What people do with redis-py, against the node at the given port, with its password."""
import sys

import redis

port, password = int(sys.argv[1]), sys.argv[2]
db = redis.Redis(port=port, password=password, client_name="library", socket_timeout=20)


def expect(want, got):
    if got != want:
        sys.exit(f"{got!r} instead of {want!r}")


def expect_error(words, call):
    try:
        got = call()
    except redis.ResponseError as e:
        if words in str(e):
            return
        got = e
    sys.exit(f"{got!r} instead of an error about {words!r}")


expect(True, db.ping())
expect("library", db.client_getname())
expect(True, db.set("a", "1", ex=100))
expect(100, db.ttl("a"))
expect(b"1", db.get("a"))
expect(3, db.incr("a", 2))
expect(1, db.decr("a", 2))
expect(True, db.mset({"b": b"\x00\xff", "c": ""}))
expect([b"1", b"\x00\xff", b"", None], db.mget("a", "b", "c", "d"))
expect(2, db.exists("a", "b", "d"))
expect(True, db.expire("b", 50))
expect(False, db.expire("d", 50))
expect({b"a", b"b", b"c"}, set(db.scan_iter(count=1)))
expect([b"c"], list(db.scan_iter(match="c*", _type="string")))
expect(b"string", db.type("a"))
expect(2 + 1 + 96, db.memory_usage("b"))
expect(2, db.delete("a", "b", "d"))
expect(1, db.dbsize())
expect("67108864", db.config_get("maxmemory")["maxmemory"])
expect("loadgen", db.info("server")["server_name"])
expect(db.command_count(), len(db.command()))
expect(2, db.command()["get"]["arity"])

pipe = db.pipeline(transaction=False)
for i in range(1000):
    pipe.set(f"key:{i}", i * "x").strlen(f"key:{i}")
expect([step for i in range(1000) for step in (True, i)], pipe.execute())

expect_error("unknown command 'LPUSH'", lambda: db.lpush("l", 1))
expect_error("no other option", lambda: db.set("a", "1", nx=True))
expect(True, db.flushall())
expect(0, db.dbsize())
print("all as expected")
