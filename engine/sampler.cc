#include "engine/sampler.h"

#include "engine/internal/sampler_impl.h"
#include "engine/internal/sampler_options.h"
#include "engine/internal/sampling.h"

namespace geardb {

Sampler::Sampler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sampler::~Sampler() {
  // Its thread and its mutexes are those of the process that made it.
  if (impl_ != nullptr && impl_->forked()) (void)impl_.release();
}

Result<Batch> Sampler::Next(std::optional<Deadline> deadline) {
  const Deadline until = deadline.value_or(Deadline::AfterMs(impl_->options().timeout_ms));
  auto rep = impl_->Next(until);
  // Once the database is closed or a table dropped, no batch will ever be handed over.
  if (rep.status().code() == StatusCode::kCancelled) impl_->CancelDraws();
  GEARDB_RETURN_IF_ERROR(rep.status());
  return Batch(std::move(*rep));
}

Status Sampler::set_beta(double beta) {
  GEARDB_RETURN_IF_ERROR(engine::CheckBeta(impl_->spec(), beta));
  impl_->set_beta(beta);
  return Status::Ok();
}
const SamplerOptions& Sampler::options() const { return impl_->options(); }

Result<std::unique_ptr<Sampler>> Sampler::OfParts(std::span<const SamplerPart> parts,
                                                  const SamplerOptions& options) {
  std::vector<std::shared_ptr<PriorityTable::Impl>> tables;
  for (size_t p = 0; p < parts.size(); ++p) {
    if (parts[p].priority_table == nullptr) {
      return Status::InvalidArgument("part ", p, " of a sampler names no priority table");
    }
    tables.push_back(parts[p].priority_table->impl_);
    if (tables[p]->database == tables[0]->database) continue;
    return Status::InvalidArgument("part ", p, " of a sampler, priority table '",
                                   tables[p]->spec.name, "', is of another database than part 0");
  }
  if (tables.empty()) return Status::InvalidArgument("a sampler has no parts");
  GEARDB_ASSIGN_OR_RETURN(auto impl, engine::MakeSampler(tables, parts, options));
  return std::unique_ptr<Sampler>(new Sampler(std::move(impl)));
}

namespace engine {
namespace {

Status RestartDraws(const std::shared_ptr<PriorityTable::Impl>& priority_table,
                    const SamplerOptions& options) {
  auto table = priority_table->table;
  const uint32_t number = priority_table->number;
  FunctionChange change(nullptr);
  change.set_apply([&](Lsn, Lsn end) {
    engine::ApplyLock lock(table->state.get(), end);
    table->state->Apply(*change.operation()->change_as_RestartDraws(), number);
  });
  change.FinishBody(
      {.table = table->layout().id(), .priority_table = number}, fb::Change::RestartDraws,
      fb::CreateRestartDraws(change.body, options.seed, *options.restart_draw).Union());
  GEARDB_ASSIGN_OR_RETURN(const Lsn end,
                          priority_table->database->Commit(table.get(), &change, {}));
  return priority_table->database->Acknowledge(end, Ack::kLog);
}

}  // namespace

Result<std::unique_ptr<Sampler::Impl>> MakeSampler(
    std::span<const std::shared_ptr<PriorityTable::Impl>> tables,
    std::span<const SamplerPart> parts, const SamplerOptions& options) {
  GEARDB_ASSIGN_OR_RETURN(auto sources, CheckSampler(tables, parts, options));
  if (!options.observer) GEARDB_RETURN_IF_ERROR(tables[0]->database->CheckWritable());
  auto sampler = std::make_unique<Sampler::Impl>(std::move(sources), options);
  GEARDB_RETURN_IF_ERROR(sampler->StartGatherer());
  // Last: what is refused has logged nothing.
  if (!options.observer && options.restart_draw) {
    GEARDB_RETURN_IF_ERROR(RestartDraws(tables[0], options));
  }
  return sampler;
}

}  // namespace engine
}  // namespace geardb
