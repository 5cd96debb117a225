#include "insights/series/system_fold.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>
#include <variant>

#include "insights/series/node_owner.h"
#include "insights/series/open_bytes.h"

namespace tocsin::insights {
namespace {

constexpr std::int64_t kNanosOfAMilli = 1'000'000;
constexpr std::int64_t kMicrosOfAMilli = 1000;
constexpr double kMillisOfASecond = 1000;
constexpr core::Duration kSweepRests = std::chrono::milliseconds(300);  // then it is whole
constexpr std::size_t kMostSweeps = 64;        // open at once of one agent, one for each run
constexpr std::size_t kMostOfASweep = 65'536;  // samples
// Kept bytes that begin with it have the time of each counter; older ones begin with the newest sweep.
constexpr std::uint64_t kWithTimes = 0x5353'0002'0000'0000;
constexpr std::size_t kMostAgents = 10'000;  // remembered; what is forgotten is read again

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kUnits{
    {{".utilization", "1"},
     {".io", "By"},
     {".io.rate", "By/s"},
     {".usage", "By"},
     {".limit", "By"},
     {"hw.temperature", "Cel"},
     {"hw.power", "W"}}};

std::string_view unit_of_metric(std::string_view metric) {
  if (metric == "system.cpu.busy" || metric == "system.cpu.iowait") return "1";
  if (metric == "tocsin.gpu.power.limit") return "W";
  for (const auto& one : kUnits) {
    if (metric.ends_with(one.first)) return one.second;
  }
  return "";
}

bool names_series(const core::Dictionary& names) {
  return std::any_of(names.begin(), names.end(), [](const core::NamedEntry& entry) {
    return entry.type == core::DictionaryType::series;
  });
}

}  // namespace

SeriesLabel split_series(std::string_view text) {
  const std::size_t brace = text.find('{');
  if (brace == std::string_view::npos || !text.ends_with('}')) return {text, {}};
  return {text.substr(0, brace), text.substr(brace + 1, text.size() - brace - 2)};
}

std::string_view label_of(std::string_view labels, std::string_view key) {
  while (!labels.empty()) {
    const std::size_t comma = labels.find(',');
    const std::string_view one = labels.substr(0, comma);
    if (one.size() > key.size() && one.starts_with(key) && one[key.size()] == '=')
      return one.substr(key.size() + 1);
    if (comma == std::string_view::npos) break;
    labels.remove_prefix(comma + 1);
  }
  return {};
}

// What folding of one sweep sums up.
struct SystemFold::Turn {
  struct Share {
    double idle = 0, iowait = 0;
    bool known = false;  // its idle is
  };
  struct Mean {
    double sum = 0;
    std::int64_t of = 0;
    void add(double value) {
      sum += value;
      ++of;
    }
  };
  Agent& agent;
  Node& node;
  SeriesWriter& into;
  std::int64_t time;
  std::vector<std::pair<std::string, Share>> cores = {};  // in the order in which they came
  std::unordered_map<std::string, std::size_t> place = {};
  Mean gpus = {}, memories = {};
  std::optional<double> network = {}, network_rate = {};
};

SystemFold::Sent SystemFold::described(std::string_view text) {
  Sent out;
  out.text = std::string(text);
  const auto [metric, labels] = split_series(text);
  if (metric == "system.cpu.utilization") {
    const std::string_view mode = label_of(labels, "cpu.mode");
    out.core = std::string(label_of(labels, "cpu.logical_number"));
    if (!out.core.empty() && !mode.empty())
      out.role = mode == "idle"     ? Role::cpu_idle
                 : mode == "iowait" ? Role::cpu_iowait
                                    : Role::cpu_other;
  } else if (metric == "hw.gpu.utilization") {
    out.role = Role::gpu_busy;
  } else if (metric == "hw.gpu.memory.utilization") {
    out.role = Role::gpu_memory;
  } else if (metric == "system.network.io") {
    out.role = Role::network;
  }
  if (metric == "system.network.io" || metric == "system.disk.io")
    out.rate = std::string(metric) + ".rate{" + std::string(labels) + "}";
  return out;
}

SystemFold::Node& SystemFold::node_of(const core::RunUid& owner, SeriesWriter& into) {
  const auto [found, fresh] = nodes_.try_emplace(owner);
  if (fresh) {
    for (const auto& name : into.names_of(owner, name_kind::kSentSeries))
      found->second.names.emplace(name.first, described(name.second));
  }
  return found->second;
}

SystemFold::Agent& SystemFold::agent_of(const SegmentOf& segment, SeriesWriter& into) {
  const auto [found, fresh] = agents_.try_emplace({segment.run, segment.incarnation});
  if (fresh) {
    found->second.segment = segment;
    restore(found->second, into.open_of(segment, OpenKind::sweep));
  }
  return found->second;
}

void SystemFold::take_names(const core::RunUid& owner, const core::Dictionary& names,
                            SeriesWriter& into) {
  if (!names_series(names)) return;  // somebody who tells of deaths only
  Node& node = node_of(owner, into);
  for (const core::NamedEntry& entry : names) {
    if (entry.type == core::DictionaryType::node) into.name_worker(owner, entry.hash, entry.name);
    if (entry.type != core::DictionaryType::series) continue;
    into.name_sent(owner, entry.hash, entry.name);
    node.names.insert_or_assign(entry.hash, described(entry.name));  // said anew, too
    node.made.clear();
  }
}

void SystemFold::take_rows(const core::FrameView& frame, core::Duration now, SeriesWriter& into) {
  const core::FrameHeader& header = frame.header();
  const SegmentOf segment{node_owner(header.worker), header.worker, header.incarnation, 0,
                          header.rank};
  Agent& agent = agent_of(segment, into);
  if (!agent.sweeps.contains(header.run) && agent.sweeps.size() >= kMostSweeps)
    agent.sweeps.erase(agent.sweeps.begin());
  Sweep& sweep = agent.sweeps[header.run];
  std::int64_t linked = -1;
  for (std::size_t at = 0; at < frame.rows(); ++at) {
    const core::SystemRow row = frame.system(at);
    const std::int64_t time = row.time / kNanosOfAMilli;
    if (time < 0) continue;
    linked = std::max(linked, time);
    if (time <= agent.folded || time < sweep.time) continue;
    if (time > sweep.time) {
      fold(agent, sweep, into);
      sweep.time = time;
    }
    if (sweep.samples.size() < kMostOfASweep)
      sweep.samples.push_back({row.series, row.value, (row.meta & 1U) != 0});
    sweep.grown = now;
    agent.changed = true;
  }
  into.heard(segment.run, header.time / kNanosOfAMilli * kMicrosOfAMilli);
  if (!header.run.nil() && linked >= 0) {
    into.heard(header.run, header.time / kNanosOfAMilli * kMicrosOfAMilli);
    into.link_node(header.run, segment.run, linked);
  }
}

void SystemFold::take(const core::FrameView& frame, const core::FrameBody& body, core::Duration now,
                      SeriesWriter& into) {
  const core::FrameHeader& header = frame.header();
  if (header.rank != core::kNodeAgentRank) return;
  if (const auto* names = std::get_if<core::Dictionary>(&body); names != nullptr) {
    const core::RunUid owner = node_owner(header.worker);
    take_names(owner, *names, into);
    // Its first sample may be of the next commit: until then it is nothing old that is forgotten.
    if (names_series(*names)) into.heard(owner, header.time / kNanosOfAMilli * kMicrosOfAMilli);
    return;
  }
  if (header.kind == core::FrameKind::system) take_rows(frame, now, into);
}

void SystemFold::put(Turn& turn, const std::string& text, double value) {
  const auto [made, fresh] = turn.node.made.try_emplace(text, 0);
  if (fresh) {
    made->second = core::name_hash(text);
    turn.into.name(
        turn.agent.segment.run, FamilyKind::system,
        {made->second, text, core::Role::other, unit_of_metric(split_series(text).metric)});
  }
  const std::array<double, 1> values{value};
  turn.into.add(turn.agent.segment, FamilyKind::system, made->second, core::Mode::global, turn.time,
                values);
}

void SystemFold::fold_samples(Turn& turn, const std::vector<Sample>& samples) {
  const auto share = [&turn](const std::string& core) -> Turn::Share& {
    const auto [found, fresh] = turn.place.try_emplace(core, turn.cores.size());
    if (fresh) turn.cores.emplace_back(core, Turn::Share());
    return turn.cores[found->second].second;
  };
  for (const Sample& sample : samples) {
    const auto named = turn.node.names.find(sample.series);
    if (named == turn.node.names.end()) continue;  // nobody has said what it is
    const Sent& sent = named->second;
    if (sent.role == Role::cpu_other) continue;
    if (sent.role == Role::cpu_idle) {
      share(sent.core).idle = sample.value;
      share(sent.core).known = true;
      continue;
    }
    if (sent.role == Role::cpu_iowait) {
      share(sent.core).iowait = sample.value;
      continue;
    }
    double value = sample.value;
    if (sample.counter) {
      const Count now{value, turn.time};
      const auto [before, first] = turn.agent.counts.try_emplace(sample.series, now);
      const Count then = std::exchange(before->second, now);
      const double grown = value - then.value;
      if (first || !(grown >= 0)) continue;
      value = grown;
      if (!sent.rate.empty() && then.time >= 0 && turn.time > then.time) {
        const double rate = grown * kMillisOfASecond / static_cast<double>(turn.time - then.time);
        if (sent.role == Role::network) turn.network_rate = turn.network_rate.value_or(0) + rate;
        put(turn, sent.rate, rate);
      }
    }
    if (sent.role == Role::gpu_busy) turn.gpus.add(value);
    if (sent.role == Role::gpu_memory) turn.memories.add(value);
    if (sent.role == Role::network) turn.network = turn.network.value_or(0) + value;
    put(turn, sent.text, value);
  }
}

void SystemFold::fold(Agent& agent, Sweep& sweep, SeriesWriter& into) {
  const std::int64_t time = std::exchange(sweep.time, -1);
  const std::vector<Sample> samples = std::exchange(sweep.samples, {});
  // What the agent told another run, or nobody, before that comes first: when it begins to serve a run
  // its sweeps go elsewhere.
  for (auto next = agent.sweeps.begin(); next != agent.sweeps.end(); ++next) {
    const std::int64_t older = next->second.time;
    if (older >= 0 && older < time) fold(agent, next->second, into);
  }
  if (time <= agent.folded || samples.empty()) return;  // another run's partition brought it before
  agent.folded = time;
  agent.changed = true;
  Turn turn{agent, node_of(agent.segment.run, into), into, time};
  fold_samples(turn, samples);
  Turn::Mean busy;
  Turn::Mean waiting;
  for (const auto& [core, share] : turn.cores) {
    if (!share.known) continue;
    const double working = std::max(0.0, 1 - share.idle - share.iowait);
    put(turn, "system.cpu.busy{cpu.logical_number=" + core + "}", working);
    put(turn, "system.cpu.iowait{cpu.logical_number=" + core + "}", share.iowait);
    busy.add(working);
    waiting.add(share.iowait);
  }
  const auto put_mean = [&turn](const char* text, const Turn::Mean& mean) {
    if (mean.of > 0) put(turn, text, mean.sum / static_cast<double>(mean.of));
  };
  put_mean("system.cpu.busy{mean}", busy);
  put_mean("system.cpu.iowait{mean}", waiting);
  put_mean("hw.gpu.utilization{mean}", turn.gpus);
  put_mean("hw.gpu.memory.utilization{mean}", turn.memories);
  if (turn.network) put(turn, "system.network.io{total}", *turn.network);
  if (turn.network_rate) put(turn, "system.network.io.rate{total}", *turn.network_rate);
}

bool SystemFold::settle(core::Duration now, SeriesWriter& into) {
  bool folded = false;
  for (auto& entry : agents_) {
    Agent& agent = entry.second;
    for (auto& open : agent.sweeps) {
      Sweep& sweep = open.second;
      if (sweep.time < 0 || now - sweep.grown < kSweepRests) continue;
      fold(agent, sweep, into);
      folded = true;
    }
    if (std::exchange(agent.changed, false))
      into.keep_open(agent.segment, OpenKind::sweep, kept(agent));
  }
  if (agents_.size() > kMostAgents) {
    agents_.clear();
    nodes_.clear();
  }
  return folded;
}

std::string SystemFold::kept(const Agent& agent) {
  OpenBytes out;
  out.put(kWithTimes);
  out.put(static_cast<std::uint64_t>(agent.folded));
  out.put(std::uint64_t{agent.counts.size()});
  for (const auto& [series, count] : agent.counts) {
    out.put(series);
    out.put(count.value);
    out.put(static_cast<std::uint64_t>(count.time));
  }
  for (const auto& [run, sweep] : agent.sweeps) {
    if (sweep.time < 0) continue;
    std::array<std::uint64_t, 2> uid{};
    std::memcpy(uid.data(), run.bytes.data(), sizeof uid);
    for (const std::uint64_t word : uid) out.put(word);
    out.put(static_cast<std::uint64_t>(sweep.time));
    out.put(std::uint64_t{sweep.samples.size()});
    for (const Sample& sample : sweep.samples) {
      out.put(sample.series);
      out.put(sample.value);
      out.put(std::uint64_t{sample.counter ? 1U : 0U});
    }
  }
  return out.text();
}

void SystemFold::restore(Agent& agent, std::string_view bytes) {
  if (bytes.empty()) return;
  OpenReading in(bytes);
  const std::uint64_t first = in.word();
  const bool timed = first == kWithTimes;
  agent.folded = static_cast<std::int64_t>(timed ? in.word() : first);
  for (std::uint64_t left = in.word(); left > 0 && !in.short_of(); --left) {
    const std::uint64_t series = in.word();
    Count& count = agent.counts[series];
    count.value = in.number();
    if (timed) count.time = static_cast<std::int64_t>(in.word());
  }
  while (!in.short_of()) {
    std::array<std::uint64_t, 2> uid{in.word(), in.word()};
    Sweep sweep;
    sweep.time = static_cast<std::int64_t>(in.word());
    for (std::uint64_t left = in.word(); left > 0 && !in.short_of(); --left) {
      const std::uint64_t series = in.word();
      const double value = in.number();
      sweep.samples.push_back({series, value, in.word() != 0});
    }
    if (in.short_of()) break;
    core::RunUid run;
    std::memcpy(run.bytes.data(), uid.data(), sizeof uid);
    agent.sweeps[run] = std::move(sweep);
  }
}

}  // namespace tocsin::insights
