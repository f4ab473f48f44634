// A program outside the tree: it sees the installed headers and library, and nothing else.
//   consumer DIRECTORY
#include <array>
#include <cstdio>
#include <string>

#include "engine/database.h"
#include "engine/sampler.h"

namespace {

geardb::Status Run(const std::string& directory) {
  GEARDB_ASSIGN_OR_RETURN(auto database, geardb::Database::Open(directory, {}));
  geardb::PriorityTableSpec items;
  items.name = "per";
  geardb::TableSpec spec;
  spec.name = "replay";
  spec.columns = {{"obs", geardb::DType::kF32, {4}}, {"reward", geardb::DType::kF32, {}}};
  spec.priority_tables = {items};
  GEARDB_ASSIGN_OR_RETURN(auto table, database->OpenOrCreateTable(spec));

  GEARDB_ASSIGN_OR_RETURN(auto writer, table->NewWriter({}));
  for (int step = 0; step < 10; ++step) {
    const std::array<float, 4> obs = {1, 2, 3, static_cast<float>(step)};
    const float reward = 1;
    geardb::AppendOptions options;
    options.end = step == 9 ? geardb::End::kTerminated : geardb::End::kGo;
    const auto appended =
        writer->Append({{"obs", geardb::TensorView::Of(std::span<const float>(obs))},
                        {"reward", geardb::TensorView::Scalar(reward)}},
                       options);
    GEARDB_RETURN_IF_ERROR(appended.status());
  }

  geardb::SamplerOptions options;
  options.batch = 8;
  options.views = {{"obs"}};
  GEARDB_ASSIGN_OR_RETURN(auto priorities, table->OpenPriorityTable("per"));
  GEARDB_ASSIGN_OR_RETURN(auto sampler, priorities->NewSampler(options));
  GEARDB_ASSIGN_OR_RETURN(const auto batch, sampler->Next());
  std::printf("stored %llu steps, drew %lld\n", static_cast<unsigned long long>(table->StepCount()),
              static_cast<long long>(batch.size()));
  if (table->StepCount() != 10 || batch.size() != 8)
    return geardb::Status::Internal("wrong counts");
  return database->Close();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const geardb::Status status = Run(argv[1]);
  std::printf("%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
