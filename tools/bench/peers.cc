#include "tools/bench/peers.h"

#include <cstdio>
#include <cstdlib>
#include <memory>

namespace geardb::bench {

std::optional<double> MeasurePeer(const Settings& settings, const Row& row, std::string* note) {
  if (settings.peers.empty() || row.peer.name.empty()) return std::nullopt;
  const std::string command = "'" + settings.peers + "/bin/python' tools/bench/peers/" +
                              row.peer.name + "_peer.py " + row.peer.arguments;
  const auto close = [](std::FILE* pipe) { ::pclose(pipe); };
  const std::unique_ptr<std::FILE, decltype(close)> pipe(::popen(command.c_str(), "r"), close);
  char line[64] = {};
  if (pipe == nullptr || std::fgets(line, sizeof(line), pipe.get()) == nullptr) {
    *note += (note->empty() ? "" : "; ") + std::string("the peer could not be measured");
    return std::nullopt;
  }
  const double figure = std::strtod(line, nullptr);
  if (!(figure > 0)) return std::nullopt;
  return figure;
}

}  // namespace geardb::bench
