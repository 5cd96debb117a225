#include "routing/tables/issue_record.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "core/identity.h"
#include "routing/tables/packed_bytes.h"

namespace tocsin::routing {
namespace {

// A record begins with it. What it says of what follows never changes: another order, or another
// member that is not at the end, is another number, and this one is read on.
constexpr char kFirstForm = 1;
constexpr std::size_t kSumBytes = 8;

core::Error damaged(std::string what) { return {core::Code::data_loss, std::move(what)}; }

void append_sum(std::string& out) {
  const std::uint64_t sum = core::name_hash(out);
  for (unsigned i = 0; i < kSumBytes; ++i) out += static_cast<char>(sum >> (8 * i));
}

/// What stands before the sum; empty: the sum is of something else.
std::string_view summed(std::string_view value) {
  if (value.size() <= kSumBytes) return {};
  const std::string_view bytes = value.substr(0, value.size() - kSumBytes);
  std::uint64_t sum = 0;
  for (unsigned i = 0; i < kSumBytes; ++i) {
    sum |= std::uint64_t{static_cast<unsigned char>(value[bytes.size() + i])} << (8 * i);
  }
  return core::name_hash(bytes) == sum ? bytes : std::string_view();
}

template <typename IO, typename State, typename Source>
void head(IO& io, State& state, Source&& pack_source) {
  pack(io, state.episode);
  pack(io, state.firing);
  pack(io, state.expires_at);
  pack(io, state.expiry_explicit);
  pack(io, state.last_transition);
  pack(io, state.changed_at);
  pack_source(state.newest.source);
  pack(io, state.newest.sequence);
  pack(io, state.newest.time);
}

}  // namespace

bool is_issue_record(std::string_view value) noexcept { return value.starts_with(kFirstForm); }

std::string write_issue_record(const IssueState& state) {
  std::string out(1, kFirstForm);
  out.reserve(1024);
  BytesOut io(out);
  head(io, state, [&](const SharedText& source) { io.text(source); });
  io.number(state.sequences.size());
  for (const auto& [source, sequence] : state.sequences) {
    io.text(source);
    pack(io, sequence);
  }
  std::vector<std::string_view> groups;
  groups.reserve(state.groups.size());
  for (const Group* group : state.groups) groups.push_back(group->hash);
  std::sort(groups.begin(), groups.end());
  io.number(groups.size());
  for (const std::string_view hash : groups) io.text(hash);
  state.issue.write(io);
  io.number(state.past.size());
  for (const auto& [episode, issue] : state.past) {
    pack(io, episode);
    KeptIssue(issue).write(io);
  }
  append_sum(out);
  return out;
}

core::Status read_issue_record(std::string_view value, SharedTexts& sources, IssueState& state) {
  const std::string_view bytes = summed(value);
  if (bytes.empty()) return damaged("its sum is another one");
  BytesIn io(bytes.substr(1));
  head(io, state, [&](SharedText& source) { source = sources.shared(io.text()); });
  for (std::size_t left = io.count(); left > 0; --left) {
    const SharedText source = sources.shared(io.text());
    pack(io, state.sequences.of_shared(source));
  }
  pack(io, state.joined);
  bool good = state.issue.read(io);
  for (std::size_t left = io.count(); left > 0 && good; --left) {
    std::uint64_t episode = 0;
    pack(io, episode);
    KeptIssue before;
    good = before.read(io);
    state.past[episode] = before.whole();
  }
  if (!good || !io.good()) return damaged("its members are not those of an issue");
  return core::ok();
}

}  // namespace tocsin::routing
