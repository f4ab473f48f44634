#include "engine/writer.h"

#include "engine/internal/append.h"
#include "engine/internal/append_bind.h"

namespace geardb {

using engine::AppendKind;
using engine::BoundAppend;
using engine::CheckLane;

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Writer::~Writer() {
  // Its trajectories are open in the process that made it.
  if (impl_ != nullptr && impl_->forked()) (void)impl_.release();
}

namespace {

/// The common way of the three calls that append to one lane.
Result<Appended> AppendToLane(Writer::Impl* impl, AppendKind kind, ColumnValues rows,
                              const AppendOptions& options) {
  GEARDB_ASSIGN_OR_RETURN(const BoundAppend bound, engine::BindAppend(impl, kind, rows, options));
  const Ack ack = impl->AckOf(options.ack);
  if (bound.calls.empty()) {
    GEARDB_RETURN_IF_ERROR(impl->CheckNothing(bound.nothing, options.priorities, ack));
    return Appended{};
  }
  GEARDB_ASSIGN_OR_RETURN(const auto appended, impl->Append(bound.calls, options.priorities, ack));
  return appended[0];
}

}  // namespace

Result<Appended> Writer::Append(ColumnValues row, const AppendOptions& options) {
  return AppendToLane(impl_.get(), AppendKind::kOneRow, row, options);
}

Result<Appended> Writer::AppendSteps(ColumnValues rows, const AppendOptions& options) {
  return AppendToLane(impl_.get(), AppendKind::kSteps, rows, options);
}

Result<Appended> Writer::AppendTrajectory(ColumnValues rows, const AppendOptions& options) {
  return AppendToLane(impl_.get(), AppendKind::kTrajectory, rows, options);
}

Result<std::vector<Appended>> Writer::AppendLanes(ColumnValues rows,
                                                  const AppendLanesOptions& options) {
  GEARDB_ASSIGN_OR_RETURN(const BoundAppend bound,
                          engine::BindAppendLanes(impl_.get(), rows, options));
  std::vector<Appended> result(impl_->options().lanes);
  const Ack ack = impl_->AckOf(options.ack);
  if (bound.calls.empty()) {
    GEARDB_RETURN_IF_ERROR(impl_->CheckNothing(bound.nothing, options.priorities, ack));
    return result;
  }
  if (!bound.nothing.empty()) GEARDB_RETURN_IF_ERROR(impl_->CheckCall(bound.nothing, ack));
  GEARDB_ASSIGN_OR_RETURN(const auto appended, impl_->Append(bound.calls, options.priorities, ack));
  for (size_t i = 0; i < bound.calls.size(); ++i) result[bound.calls[i].lane] = appended[i];
  return result;
}

Result<Appended> Writer::Cut(uint32_t lane) {
  GEARDB_RETURN_IF_ERROR(CheckLane(impl_.get(), lane));
  return impl_->Cut(lane);
}

Status Writer::Resume(TrajectoryId id, uint32_t lane) {
  GEARDB_RETURN_IF_ERROR(CheckLane(impl_.get(), lane));
  return impl_->Resume(id, lane);
}

Result<TrajectoryId> Writer::Detach(uint32_t lane) {
  GEARDB_RETURN_IF_ERROR(CheckLane(impl_.get(), lane));
  return impl_->Detach(lane);
}

TrajectoryId Writer::open_trajectory(uint32_t lane) const {
  if (lane >= impl_->options().lanes || impl_->lane(lane).removed.load()) return 0;
  return impl_->lane(lane).id;
}

}  // namespace geardb
