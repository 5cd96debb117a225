#include "routing/tables/state_codec.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/fields/json_in.h"
#include "core/fields/notification.h"
#include "core/fields/out.h"
#include "core/fields/run_told.h"
#include "core/fields/stop_course.h"
#include "routing/tables/issue_record.h"

namespace tocsin::routing {

using core::Error;
using core::How;
using core::Nanoseconds;
using core::Number;
using core::Of;
using core::Result;
using core::Status;
using core::WallTime;

namespace {

/// Far above the largest group's log.
constexpr std::size_t kMaxStateBytes = std::size_t{16} << 20;

}  // namespace

template <typename A>
void row(A& io, Of<A, ShortKey>& key) {
  std::string text;
  if constexpr (!A::kReading) text = key.text();
  io.item(text);
  if constexpr (A::kReading) key = ShortKey(text);
}
template <typename A, typename Entry>
void row(A& io, std::pair<ShortKey, Entry>& entry) {
  row(io, entry.first);
  row(io, entry.second);
}
template <typename A, typename Entry>
void row(A& io, const std::pair<const ShortKey, Entry>& entry) {
  row(io, entry.first);
  row(io, entry.second);
}

template <typename A>
void fields(A& io, Of<A, Newest>& newest) {
  std::string source;
  if constexpr (!A::kReading) source = newest.source.text();
  io.field("source", source);
  if constexpr (A::kReading) newest.source = source;
  io.field("sequence", newest.sequence);
  io.field("time", Nanoseconds{newest.time});
}

/// What grows with the number of issues is a list: objects are bounded in keys. `newest`: where it is
/// another report than the one that the issue's words come from.
template <typename A>
void issue_fields(A& io, Of<A, IssueState>& state,
                  Of<A, std::map<std::string, std::uint64_t>>& sequences,
                  Of<A, std::optional<Newest>>& newest, Of<A, std::vector<std::uint64_t>>& past,
                  Of<A, std::vector<std::string>>& groups) {
  io.field("episode", state.episode, "", How::required);
  io.field("firing", state.firing, "", How::required);
  io.field("expires_at", Nanoseconds{state.expires_at});
  io.field("expiry_explicit", state.expiry_explicit, "", How::required);
  io.field("last_transition", Nanoseconds{state.last_transition}, "", How::required);
  io.field("changed_at", Nanoseconds{state.changed_at}, "", How::omit_if_empty);
  io.rows("sequences", sequences);
  io.field("newest", newest, "", How::omit_if_empty);
  io.field("past", past);
  io.field("groups", groups, "", How::omit_if_empty);
}

template <typename A>
void fields(A& io, Of<A, Group>& group) {
  io.field("key", group.key);
  io.field("route", group.route_id);
  io.field("grouping", group.grouping);
  io.field("labels", group.labels);
  io.field("overflow", group.overflow, "", How::required);
  io.field("generation", group.generation, "", How::required);
  io.field("created_at", Nanoseconds{group.created_at}, "", How::required);
  io.field("next_tick", Nanoseconds{group.next_tick});
  io.field("urgent_at", Nanoseconds{group.urgent_at});
  io.field("pulled_at", Nanoseconds{group.pulled_at}, "", How::omit_if_empty);
  io.field("last_urgent", Nanoseconds{group.last_urgent});
  io.field("last_tick", Nanoseconds{group.last_tick});
  io.field("flush_seq", group.flush_seq, "", How::required);
  io.field("running", group.running, "", How::required);
  io.field("changed", group.changed, "", How::required);
  io.field("held", group.held, "", How::required);
  io.field("absent_since", Nanoseconds{group.absent_since});
}

template <typename A>
void row(A& io, Of<A, TellLog::Told>& told) {
  io.item(told.episode);
  io.item(Number{told.severity, core::Severity::critical});
  io.item(told.by);
}
template <typename A>
void row(A& io, Of<A, TellLog::Owed>& owed) {
  io.item(owed.episode);
  io.item(Nanoseconds{owed.since});
}
template <typename A>
void row(A& io, Of<A, TellLog::Pending>& message) {
  io.item(message.seq);
  io.item(message.id);
  io.item(message.kind);
  io.item(Nanoseconds{message.decided_at});
  io.items(message.over);
}

template <typename A>
void fields(A& io, Of<A, TellLog>& log) {
  io.rows("told", log.told);
  io.rows("owed", log.owed);
  io.field("last_tick", Nanoseconds{log.last_tick});
  io.field("seq", log.seq, "", How::required);
  io.field("placed", log.placed, "", How::required);
  io.rows("pending", log.pending);
  io.field("by_issue", log.by_issue, "", How::omit_if_empty);
  // Keys of what was told as over: rows have no room for it that older readers would pass over.
  std::vector<std::string> over;
  if constexpr (!A::kReading) {
    for (const auto& [key, told] : log.told) {
      if (told.over) over.push_back(key.text());
    }
  }
  io.field("over", over, "", How::omit_if_empty);
  if constexpr (A::kReading) {
    for (const std::string& key : over) {
      if (const auto told = log.told.find(key); told != log.told.end()) told->second.over = true;
    }
  }
}

template <typename A>
void fields(A& io, Of<A, RunState>& run) {
  io.field("attempt", run.attempt, "", How::required);
  io.field("job", run.job);
  io.field("labels", run.labels);
  io.field("last_seen", Nanoseconds{run.last_seen}, "", How::required);
  io.field("ended_at", Nanoseconds{run.ended_at});
  io.field("lost", run.lost, "", How::required);
  io.field("heard", run.heard, "", How::required);
  io.rows("launch", run.launch);
  io.field("outcome", run.outcome);
  io.field("step", run.step);
  io.field("step_seconds", run.step_seconds);
  io.field("step_time", Nanoseconds{run.step_time}, "", How::required);
  io.field("report", run.report);
  io.field("platform", run.platform, "", How::omit_if_empty);
  io.field("started_at", Nanoseconds{run.started_at}, "", How::omit_if_empty);
  io.field("exit_code", run.exit_code, "", How::omit_if_empty);
  io.field("world_size", run.world_size, "", How::omit_if_empty);
  io.field("stop", run.stop, "", How::omit_if_empty);
  io.field("before", run.before, "", How::omit_if_empty);
}

namespace {

/// An issue on a line of its own.
struct Restored {
  core::Issue issue;
};
template <typename A>
void fields(A& io, Restored& restored) {
  core::event_fields(io, restored.issue);
}
/// The first line: what the router knows beside the issues.
struct IssueHead {
  IssueState state;
  std::map<std::string, std::uint64_t> sequences;
  std::optional<Newest> newest;
  std::vector<std::uint64_t> past;  // episodes of the lines behind the first issue
};
template <typename A>
void fields(A& io, IssueHead& head) {
  issue_fields(io, head.state, head.sequences, head.newest, head.past, head.state.joined);
}

template <typename T>
Result<T> decoded(std::string_view text) {
  T out;
  if (const core::Status read = core::read_json(text, kMaxStateBytes, out); !read) {
    return Error{core::Code::data_loss, read.error().message};
  }
  return out;
}

Newest own_place(const core::Issue& issue) {
  return {SharedText(issue.source), issue.sequence, issue.time};
}

/// Takes the next line off `text`.
std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

std::string encode(const IssueState& state) { return write_issue_record(state); }

namespace {

/// As an earlier day wrote it.
Status read_issue_lines(std::string_view value, IssueState& out) {
  Result<IssueHead> head = decoded<IssueHead>(next_line(value));
  if (!head) return head.error();
  out = std::move(head->state);
  for (const auto& [source, sequence] : head->sequences) out.sequences[source] = sequence;
  core::Issue issue;
  for (std::size_t i = 0; i <= head->past.size(); ++i) {
    if (value.empty()) return Error{core::Code::data_loss, "an issue is missing in the record"};
    Result<Restored> restored = decoded<Restored>(next_line(value));
    if (!restored) return restored.error();
    (i == 0 ? issue : out.past[head->past[i - 1]]) = std::move(restored->issue);
  }
  out.newest = head->newest.value_or(own_place(issue));
  out.issue = KeptIssue(issue);
  return core::ok();
}

}  // namespace

Status decode(std::string_view value, SharedTexts& sources, IssueState& out) {
  const Status read = is_issue_record(value) ? read_issue_record(value, sources, out)
                                             : read_issue_lines(value, out);
  if (!read) return read;
  const bool resolved = out.issue.status == core::IssueStatus::resolved;
  if (resolved == out.firing || (resolved && !out.issue.ends_at)) {
    return Error{core::Code::data_loss, "the issue's status contradicts its record"};
  }
  return core::ok();
}

Result<IssueState> decode_issue_state(std::string_view value) {
  SharedTexts sources;
  IssueState out;
  if (const Status read = decode(value, sources, out); !read) return read.error();
  return out;
}

std::string encode(const Group& group) { return core::write_json(group); }

Result<Group> decode_group(std::string_view value) { return decoded<Group>(value); }

std::string encode(const TellLog& log) { return core::write_json(log); }

Result<TellLog> decode_log(std::string_view value) { return decoded<TellLog>(value); }

std::string encode(const RunState& run) { return core::write_json(run); }

Result<RunState> decode_run(std::string_view value) {
  Result<RunState> out = decoded<RunState>(value);
  if (out) out->saved_at = out->last_seen;
  return out;
}

namespace {

template <typename T>
core::Status into(Result<T> read, T& out) {
  if (!read) return read.error();
  out = std::move(*read);
  return core::ok();
}

}  // namespace

core::Status decode(std::string_view value, Group& group) {
  return into(decode_group(value), group);
}
core::Status decode(std::string_view value, RunState& run) { return into(decode_run(value), run); }

}  // namespace tocsin::routing
