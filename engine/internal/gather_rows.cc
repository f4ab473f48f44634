#include "engine/internal/gather_rows.h"

#include <algorithm>
#include <vector>

#include "engine/internal/aside_pages.h"

namespace geardb::engine {
namespace {

/// A run of a page that is at `page` now.
void CopyRun(const GatherOutput& begun, const AsideRun& run, const std::byte* page,
             const ArenaBases& bases) {
  GatherOutput output = begun;
  output.first_group = 0;
  output.group_count = 1;
  output.first_fill = 0;
  output.fill_count = 0;
  const RunGroup group{
      .count = 1, .bytes = run.bytes, .destination_offset = run.destination_offset};
  const FrameRef source =
      FrameRef::Make(kProcessMemory, reinterpret_cast<uintptr_t>(page) + AsideOffset(run.source));
  GatherCpu({{&output, 1}, {&group, 1}, {&source, 1}, {}}, bases);
}

Status GatherAside(RunBuilder* runs, PageWaits* waits, const ArenaBases& bases) {
  std::vector<AsideRun> in_order(runs->aside().begin(), runs->aside().end());
  if (in_order.empty()) return Status::Ok();
  std::stable_sort(in_order.begin(), in_order.end(), [](const AsideRun& a, const AsideRun& b) {
    return AsideNumber(a.source) < AsideNumber(b.source);
  });
  std::vector<const AsidePage*> pages;
  for (const AsideRun& run : in_order) {
    const AsidePage* page = &waits->aside()[AsideNumber(run.source)];
    if (pages.empty() || pages.back() != page) pages.push_back(page);
  }
  AsideReader reader(std::move(pages));
  const GatherPlan plan = runs->Plan();
  size_t number = 0;
  for (size_t i = 0; i < in_order.size(); ++i) {
    const bool another =
        i > 0 && AsideNumber(in_order[i].source) != AsideNumber(in_order[i - 1].source);
    number += another ? 1 : 0;
    const auto page = reader.Get(number);
    if (!page.ok()) {
      waits->KeepFailed(reader.last());
      return page.status();
    }
    CopyRun(plan.outputs[in_order[i].output], in_order[i], *page, bases);
  }
  return Status::Ok();
}

/// What has frames has its bytes there.
Status GatherAll(RunBuilder* runs, PageWaits* waits, const HostArena& arena) {
  const ArenaBases bases = BasesOf(arena);
  GatherCpu(runs->Plan(), bases);
  return GatherAside(runs, waits, bases);
}

}  // namespace

Status GatherRows(RunBuilder* runs, PageWaits* waits, const HostArena& arena) {
  GEARDB_RETURN_IF_ERROR(waits->Wait());
  return GatherAll(runs, waits, arena);
}

Status GatherRowsHeld(RunBuilder* runs, PageWaits* waits, const HostArena& arena, size_t before) {
  if (waits->size() > before) GEARDB_RETURN_IF_ERROR(waits->WaitHeld());
  return GatherAll(runs, waits, arena);
}

}  // namespace geardb::engine
