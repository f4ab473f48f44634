# geardb_warnings(target): the warnings that every target of this tree is built with.
function(geardb_warnings target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion -Werror>)
endfunction()
