// The mutator of the fuzzers whose input is log records (record_input.h): mostly a number in one
// body, now and then any bytes. Included by the fuzzers themselves: libFuzzer finds it by its name.
#pragma once

#include "tests/fuzz/record_input.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* input, size_t size, size_t size_max);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* input, size_t size, size_t size_max,
                                          unsigned int seed) {
  if (seed % 8 == 0) return LLVMFuzzerMutate(input, size, size_max);
  return geardb::fuzzing::MutateRecords(input, size, size_max, seed);
}
