# geardb_warnings(target): the warnings that every target of this tree is built with. clang also
# checks the annotations of base/mutex.h: what is guarded by which lock (but not "precise": it
# cannot see that `core.commit` and `impl->core->commit` are one lock).
function(geardb_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Werror
    $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
    $<$<CXX_COMPILER_ID:Clang>:-Wno-thread-safety-precise>)
endfunction()
