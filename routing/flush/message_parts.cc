#include "routing/flush/message_parts.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "routing/tables/size.h"

namespace tocsin::routing {
namespace {

using Told = TellLog::Told;

FlushDecision empty_part(const FlushDecision& whole, std::uint64_t seq) {
  FlushDecision part;
  part.reason = whole.reason;
  part.kind = whole.kind;
  part.still_firing = whole.still_firing;
  part.seq = seq;
  return part;
}

/// Does the message of this decision still wait to say so?
bool depends(const Told& told, std::uint64_t first) { return told.by != 0 && told.by <= first; }

}  // namespace

std::vector<FlushDecision> in_parts(FlushDecision decision, const FlushContext& context,
                                    TellLog& log) {
  const Integration& integration = context.integration;
  std::vector<Mention> mentions = std::move(decision.firing);
  if (integration.send_resolved) {
    mentions.insert(mentions.end(), decision.resolved.begin(), decision.resolved.end());
  }
  std::sort(mentions.begin(), mentions.end(), told_before);
  std::multimap<std::string, Told, std::less<>> over(decision.over.begin(), decision.over.end());
  const std::uint64_t first = log.seq;
  std::vector<FlushDecision> parts{empty_part(decision, first)};
  std::size_t bytes = 0;
  for (const Mention& mention : mentions) {
    const FlushDecision& last = parts.back();
    const std::size_t listed = last.firing.size() + last.resolved.size();
    const std::size_t size = approximate_bytes(report_of(mention));
    const bool full = (integration.max_alerts > 0 && listed >= integration.max_alerts) ||
                      bytes + size > kMaxMessageBytes;
    if (full && listed > 0) {
      parts.push_back(empty_part(decision, parts.back().seq + 1));
      bytes = 0;
    }
    bytes += size;
    FlushDecision& part = parts.back();
    (mention.firing ? part.firing : part.resolved).push_back(mention);
    const ShortKey& key = mention.state->key;
    if (const auto told = log.told.find(key);
        mention.firing && told != log.told.end() && depends(told->second, first)) {
      told->second.by = part.seq;  // the newest message that tells of it
    }
    for (auto at = over.find(key); at != over.end(); at = over.find(key)) {
      part.over.emplace_back(at->first, at->second);
      over.erase(at);
    }
  }
  return parts;
}

}  // namespace tocsin::routing
