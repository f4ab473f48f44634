// A program outside the tree: it sees the installed headers and library, and nothing else.
#include <cstdio>

#include "engine/schema.h"

int main() {
  geardb::TableSpec spec;
  spec.name = "replay";
  spec.columns = {{"obs", geardb::DType::kF32, {4}}, {"reward", geardb::DType::kF32}};
  const geardb::Status status = geardb::ValidateTableSpec(spec);
  std::printf("%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
