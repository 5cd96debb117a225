#include "insights/series/restart_query.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

namespace tocsin::insights {
namespace {

// Of one client of a worker, over all names.
struct ClientSteps {
  std::int64_t first = 0, last = 0;
};
using ClientKey = std::pair<std::int64_t, std::int64_t>;  // incarnation and attempt: as they came

}  // namespace

core::Result<std::vector<Restart>> ask_restarts(SeriesReader& reader, const SeriesAsk& ask) {
  const auto found = ask_names(reader, ask);
  if (!found) return found.error();
  std::map<std::pair<core::Mode, std::string>, std::map<ClientKey, ClientSteps>> workers;
  for (const NamedFamilies& one : *found) {
    for (const FamilyLine& family : one.families) {
      auto& clients = workers[{family.mode, family.worker}];
      const auto [client, fresh] = clients.try_emplace({family.incarnation, family.attempt},
                                                       ClientSteps{family.x_first, family.x_last});
      if (fresh) continue;
      client->second.first = std::min(client->second.first, family.x_first);
      client->second.last = std::max(client->second.last, family.x_last);
    }
  }
  std::map<std::pair<core::Mode, std::int64_t>, Restart> restarts;
  for (const auto& [worker, clients] : workers) {
    std::int64_t last = -1;
    for (auto client = clients.begin(); client != clients.end(); ++client) {
      const std::int64_t before = std::exchange(last, std::max(last, client->second.last));
      if (client == clients.begin()) continue;
      // Ranks without a common number of their attempt have the second in which each began.
      Restart& into = restarts[{worker.first, client->second.first}];
      into.mode = worker.first;
      into.step = client->second.first;
      into.attempt = std::max(into.attempt, client->first.second);
      into.before = std::max(into.before, std::prev(client)->first.second);
      ++into.workers;
      into.again = std::max(into.again, std::max<std::int64_t>(0, before + 1 - into.step));
    }
  }
  std::vector<Restart> out;
  out.reserve(restarts.size());
  for (const auto& entry : restarts) out.push_back(entry.second);
  std::stable_sort(out.begin(), out.end(),
                   [](const Restart& a, const Restart& b) { return a.step < b.step; });
  if (out.size() > kMostRestarts)
    out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(kMostRestarts));
  return out;
}

}  // namespace tocsin::insights
