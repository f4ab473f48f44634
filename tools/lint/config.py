"""What the rules of tools/lint hold the tree to, and every exception with its reason."""

# The layer table of the design: folder -> folders whose headers it may include.
LAYERS = {
    "base": {"base"},
    "wal": {"base", "wal"},
    "index": {"base", "index"},
    "kernels": {"base", "kernels"},
    "engine": {"base", "wal", "index", "kernels", "engine"},
}
# Public headers (engine/*.h) are installed: they see the public headers and base, no more.
PUBLIC_HEADER_LAYERS = {"base", "engine"}
# Programs under tools/ see public headers and base.
TOOL_LAYERS = {"base", "engine", "tools"}
# What one of them sees besides: folder -> headers. `geardb` shows the records of a log that may be
# too damaged to be opened: it reads them as recovery does, and what they say is no public type,
# since the schema of a body changes with the engine. And it says how many slabs a replay takes.
# `geardb repair` writes manifests and segments anew, names what records say that no reading comes
# to, and asks how far an image reaches.
TOOL_FOLDER_HEADERS = {"tools/geardb/": {"wal/log_reader.h", "wal/segment_check.h",
                                         "wal/record_codec.h", "engine/internal/cold_check.h",
                                         "engine/internal/cold_tier.h",
                                         "engine/internal/record_body.h",
                                         "engine/internal/slabs.h",
                                         "engine/internal/companion.h"},
                       # The cleaner is measured beside RocksDB as the cold store opens it, with
                       # the values that it puts there.
                       "tools/bench/": {"engine/internal/cold_db.h", "engine/internal/cold_keys.h",
                                        "engine/internal/cold_page.h"}}
# The benchmarks also measure these layers by themselves: folder -> further layers.
TOOL_FOLDER_LAYERS = {"tools/bench/": {"index", "kernels"}}

# The C++ standard library, but for <cassert> and <iostream>: every file may include these.
STANDARD_HEADERS = set("""
    algorithm any array atomic barrier bit bitset cctype cerrno cfenv cfloat charconv chrono
    cinttypes climits clocale cmath codecvt compare complex concepts condition_variable coroutine
    csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype deque
    exception execution filesystem format forward_list fstream functional future initializer_list
    iomanip ios iosfwd istream iterator latch limits list locale map memory memory_resource mutex
    new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator semaphore
    set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string
    string_view syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map
    unordered_set utility valarray variant vector version""".split())
_POSIX = {"errno.h", "fcntl.h", "sched.h", "signal.h", "stdlib.h", "sys/mman.h", "sys/resource.h",
          "sys/stat.h", "sys/wait.h", "time.h", "unistd.h"}
# What else may be included, and where: a file, or a folder with all below it. Public headers are
# installed without a dependency, so none stands here. FlatBuffers comes with generated headers.
SYSTEM_HEADERS = {
    "base/env_posix.cc": {"dirent.h", "fcntl.h", "signal.h", "sys/mman.h", "sys/stat.h",
                          "sys/statvfs.h", "unistd.h"},
    "base/fork.cc": {"pthread.h", "unistd.h"},
    "engine/internal/exit_close.cc": {"unistd.h"},
    "base/hash.cc": {"xxhash.h"},
    "index/draw_points.cc": {"immintrin.h"},
    "base/huge_pages.cc": {"sys/mman.h"},
    "base/large_memory.cc": {"sys/mman.h"},
    "base/malloc_limits.cc": {"malloc.h"},
    "index/index_memory.cc": {"fcntl.h", "sys/mman.h", "unistd.h"},
    "index/tree_descent.cc": {"immintrin.h"},
    "kernels/convert.cc": {"smmintrin.h"},
    "engine/internal/arena.cc": {"fcntl.h", "sys/mman.h", "unistd.h"},
    "engine/internal/cold_blobs.cc": {"rocksdb/db.h", "rocksdb/utilities/debug.h"},
    "engine/internal/cold_blobs.h": {"rocksdb/file_system.h"},
    "engine/internal/cold_check.cc": {"rocksdb/utilities/debug.h", "rocksdb/write_batch.h"},
    "engine/internal/cold_chunks.cc": {"rocksdb/write_batch.h"},
    "engine/internal/cold_chunks.h": {"rocksdb/db.h"},
    "engine/internal/cold_codec.cc": {"lz4.h", "zstd.h"},
    "engine/internal/cold_db.h": {"rocksdb/cache.h", "rocksdb/db.h", "rocksdb/listener.h",
                                  "rocksdb/statistics.h", "rocksdb/write_batch.h",
                                  "rocksdb/write_buffer_manager.h"},
    "engine/internal/cold_first_use.cc": {"rocksdb/env.h", "rocksdb/file_system.h"},
    "engine/internal/cold_manifest.h": {"rocksdb/file_system.h"},
    "engine/internal/cold_salvage.cc": {"rocksdb/file_system.h", "rocksdb/sst_file_reader.h"},
    "engine/internal/cold_tables.h": {"rocksdb/file_system.h"},
    "engine/internal/cold_snapshot.cc": {"rocksdb/db.h", "rocksdb/snapshot.h"},
    "engine/internal/cold_open.cc": {"rocksdb/convenience.h", "rocksdb/file_system.h",
                                     "rocksdb/filter_policy.h", "rocksdb/table.h",
                                     "rocksdb/utilities/table_properties_collectors.h",
                                     "rocksdb/write_batch.h"},
    "engine/internal/cold_own.cc": {"rocksdb/write_batch.h"},
    "engine/internal/cold_own.h": {"rocksdb/db.h"},
    "engine/internal/cold_reserve.h": {"rocksdb/file_system.h"},
    "engine/internal/cold_space.cc": {"rocksdb/convenience.h", "rocksdb/write_batch.h"},
    "engine/internal/cold_store.cc": {"rocksdb/db.h", "rocksdb/write_batch.h"},
    "engine/internal/cold_threads.h": {"rocksdb/env.h"},
    "tools/": {"iostream", *_POSIX},
    "tools/bench/": {"benchmark/benchmark.h", "sys/statfs.h", "sys/utsname.h"},
    "tools/bench/rocks_write.cc": {"rocksdb/write_batch.h"},
    "tools/bench/usage.cc": {"malloc.h"},
    "tools/geardb/": {"CLI/CLI.hpp"},
    "tools/geardb/repair_shadow.cc": {"sys/file.h"},
    "tools/quickstart/": {"CLI/CLI.hpp", "Eigen/Core", "sys/prctl.h"},
    "tests/engine/internal/cold_fault_files.h": {"rocksdb/file_system.h",
                                                 "rocksdb/system_clock.h"},
    "tests/tools/geardb/repair_shadow_test.cc": {"sys/file.h"},
    "tests/tools/geardb/sst_file.h": {"rocksdb/sst_file_reader.h"},
    "tests/": {"gmock/gmock.h", "gtest/gtest.h", "iostream", *_POSIX},
}
# What layers link that is no layer.
LAYER_LINKS = {"Threads::Threads"}

# Top-level folders of the tree.
FOLDERS = {*LAYERS, "rdma", "tools", "python", "tests", "cmake", "bench", ".ci"}

LINES_MAX = 500
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100

BANNED_NAMES = {"handler", "manager", "util", "utils", "helper", "helpers", "data", "info",
                "process"}

# Locks and the like that clang's thread-safety analysis and the tests' schedules do not know.
FOREIGN_LOCKS = (r"\bstd::(?:(?:shared_|recursive_)?(?:timed_)?mutex|condition_variable\w*|"
                 r"lock_guard|unique_lock|shared_lock|scoped_lock|once_flag|call_once|"
                 r"counting_semaphore|binary_semaphore|latch|barrier)\b|"
                 r"\bpthread_(?:mutex|rwlock|spin|cond|once|barrier)\w*")

# Before the name of a function of the C library: not a method, and of no namespace but std.
_PLAIN = r"(?<![\w.>:])(?:std::|::)?"

# Calls that library code must not make: (rule, regular expression over code without comments and
# strings, what to do instead).
BANNED_CALLS = [
    ("throw", r"\bthrow\b", "return a Status"),
    ("assert", r"(?<![\w.])assert\s*\(", "GEARDB_CHECK for a bug of ours, a Status for the rest"),
    ("exit", _PLAIN + r"(?:exit|_exit|_Exit|quick_exit|abort|terminate|raise|kill|tgkill|"
     r"pthread_kill|__builtin_trap|__builtin_abort)\s*\(", "return a Status"),
    ("print", r"\bstd::(?:cout|cerr|clog|wcout|wcerr)\b|" + _PLAIN + r"(?:v?f?printf|v?dprintf|"
     r"f?putc|putchar|puts|fputs|fwrite|fputc|perror|psignal|syslog)\s*\(",
     "return a Status, or Log of base/logging.h"),
    ("files", r"(?<![\w.>:])::(?:read|write|pwritev?|preadv?|close|ioctl|fcntl|mmap)\s*\(|"
     r"\bstd::(?:i|o)?fstream\b|\bstd::filesystem\b|" + _PLAIN + r"(?:open(?:at2?)?|open64|creat|"
     r"opendir|fdopen|freopen|fopen|tmpfile|mkstemp|mkdtemp|f?truncate|fallocate|posix_fallocate|"
     r"pwrite|pwritev|pread|preadv|fsync|fdatasync|sync_file_range|syncfs|rename(?:at2?)?|remove|"
     r"unlink(?:at)?|link(?:at)?|symlink(?:at)?|mkdir(?:at)?|rmdir|flock|lockf|syscall)"
     r"\s*\((?!\s*\))",
     "go through Env, so that tests can make it fail"),
    ("random", _PLAIN + r"(?:s?rand|rand_r|srandom|[delnmj]rand48|[sl]cong48|srand48|getrandom|"
     r"getentropy|arc4random\w*)\s*\(|(?<![\w.>:])::random\s*\(|\bstd::random_device\b",
     "a generator with a fixed seed, so that it happens again"),
    ("generator", r"\bstd::(?:mt19937(?:_64)?|minstd_rand0?|default_random_engine|ranlux\w+|"
     r"knuth_b|\w+_engine|\w+_distribution)\b",
     "base/philox.h, which gives the same numbers on every machine"),
    ("sleep", r"\b(?:sleep_for|sleep_until|usleep|(?:clock_)?nanosleep|thrd_sleep|sigtimedwait)\b|"
     + _PLAIN + r"(?:sleep|p?poll|p?select|epoll_p?wait2?)\s*\((?!\s*\))",
     "wait on a CondVar with a Deadline"),
    ("wall_clock", r"\bsystem_clock\b|(?<![\w.>])(?:std::|::)?time\s*\(\s*(?:NULL|nullptr|0)\s*\)",
     "Clock of base/clock.h"),
    ("std_mutex", FOREIGN_LOCKS, "Mutex, MutexLock and CondVar of base/mutex.h"),
    ("detach", r"\.detach\s*\(\s*\)", "join the thread"),
    ("using_namespace", r"(?m)^using\s+namespace\b|\busing\s+namespace\s+(?:::\s*)?std\s*;|"
     r"\bnamespace\s+\w+\s*=\s*(?:::\s*)?std\s*;", "name what is used"),
]
# Of those, the ones that tests must not do either, and that tools must not.
BANNED_IN_TESTS = {"sleep", "random", "using_namespace", "detach"}
BANNED_IN_TOOLS = {"assert", "random", "sleep", "detach"}

# (rule, path, reason): the rule does not hold for this file. A rule of a missing test is
# "missing_test", of a missing concurrent test "missing_concurrent_test".
ALLOWED = [
    ("exit", "base/status.cc", "CheckFailed and ValueOfError stop the process: their purpose"),
    ("exit", "engine/internal/exit_close.cc", "ends a child of a fork that is exiting anyway"),
    ("exit", "base/env_posix.cc", "signal 0 only asks whether a process is there"),
    ("print", "base/status.cc", "who aborts says why, when nothing else can be relied on"),
    ("print", "base/logging.cc", "the one place that writes to stderr"),
    ("files", "base/env_posix.cc", "the one place that makes system calls on files"),
    ("files", "base/fork.cc", "closes what a child of a fork is not to have"),
    ("files", "index/index_memory.cc", "a memfd: memory, not a file of the store"),
    ("files", "engine/internal/arena.cc", "a memfd, and the memory limits of the kernel"),
    ("random", "wal/open_log.cc", "the uuid of a new log must differ from every other log's"),
    ("wall_clock", "base/clock.cc", "the clock itself"),
    ("std_mutex", "base/mutex.h", "what Mutex and CondVar are made of"),
    ("missing_test", "engine/internal/append_decide.cc",
     "tests/engine/writer_test.cc and table_capacity_test.cc see every decision from outside"),
    ("missing_test", "engine/internal/append_limits.cc",
     "tests/engine/rate_limit_test.cc, rate_limit_concurrent_test.cc and rate_limit_model_test.cc"),
    ("missing_test", "engine/internal/append_priorities.cc",
     "tests/engine/priority_table_initial_test.cc and priority_table_scale_test.cc"),
    ("missing_test", "engine/internal/batch_build.cc",
     "tests/engine/sampler_test.cc and tests/conformance compare every output with a model"),
    ("missing_test", "engine/internal/batch_items.cc",
     "tests/engine/sampler_test.cc and tests/conformance compare every output with a model"),
    ("missing_test", "engine/internal/core.cc",
     "every test of tests/engine goes through it; tests/engine/database_concurrent_test.cc"),
    ("missing_test", "engine/internal/hand_over.cc",
     "tests/engine/sampler_parts_test.cc looks at what a crash leaves of each part"),
    ("missing_test", "engine/internal/part_draw.cc",
     "tests/engine/sampler_within_test.cc and sampler_tokens_test.cc draw beside a reference"),
    ("missing_test", "engine/internal/priority_state.cc",
     "it makes a selector; tests/engine/priority_table_test.cc sees both kinds"),
    ("missing_test", "engine/internal/sampler_draw.cc",
     "tests/engine/sampler_parts_test.cc draws beside a reference; sampler_draws_test.cc"),
    ("missing_test", "engine/internal/sampler_impl.cc",
     "tests/engine/sampler_draws_test.cc: prefetching, waits, draw numbers"),
    ("missing_test", "engine/internal/sampler_options.cc",
     "the tests of samplers below tests/engine: what is wrong is named"),
    ("missing_test", "engine/internal/set_priorities.cc",
     "tests/engine/priority_table_test.cc: every kind of Set"),
    ("missing_test", "engine/internal/table_apply.cc",
     "tests/engine/database_reopen_test.cc compares what was applied live and replayed"),
    ("missing_test", "engine/internal/table_change.cc",
     "tests/engine/table_remove_test.cc and database_reopen_test.cc"),
    ("missing_test", "engine/internal/reopen.cc",
     "tests/engine/database_damage_test.cc and tests/engine/internal/cleaner_test.cc"),
    ("missing_test", "engine/internal/table_frames_cold.cc",
     "tests/engine/internal/cleaner_test.cc: which pages go into the cold store"),
    ("missing_test", "engine/internal/table_limits.cc",
     "tests/engine/rate_limit_model_test.cc compares it live and replayed with a model"),
    ("missing_test", "engine/internal/table_read.cc", "tests/engine/table_read_test.cc"),
    ("missing_test", "engine/internal/table_state.cc",
     "tests/engine/internal/anchors_test.cc, append_plan_test.cc and tests/conformance"),
    ("missing_test", "engine/internal/trajectory_end.cc",
     "tests/engine/writer_test.cc (cut) and database_reopen_test.cc (orphans, resume)"),
    ("missing_test", "wal/writer_fill.cc",
     "tests/wal/log_writer_test.cc reads back what it fills"),
    ("missing_concurrent_test", "tools/bench/store.cc",
     "a counter that numbers temporary directories, which nothing else depends on"),
    ("missing_concurrent_test", "tools/bench/append_sync.cc",
     "threads with a writer each, as in tests/engine/database_concurrent_test.cc, then joined"),
    ("missing_concurrent_test", "tools/bench/append_stall.cc",
     "one thread waits until its turn has come"),
    ("missing_concurrent_test", "tools/bench/ceilings.cc",
     "threads that read a file, then joined; one read is ahead, into the buffer that nobody looks "
     "at, and is waited for"),
    ("names", "base/env.h", "data() and size() are what the standard library calls them"),
]
