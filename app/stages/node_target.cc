#include "app/stages/node_target.h"

#include "core/topics.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace tocsin::app {
namespace {

constexpr std::size_t kRowsPerFrame = 500;
constexpr core::Duration kNamesEvery = std::chrono::minutes(5);

}  // namespace

NodeTarget::NodeTarget(core::RunUid run, std::string node, std::uint64_t incarnation)
    : node_(std::move(node)), key_(run.nil() ? core::node_route_key(node_) : core::route_key(run)) {
  header_.run = run;
  header_.rank = core::kNodeAgentRank;
  header_.worker = core::name_hash(node_);
  header_.incarnation = incarnation;
  header_.mode = core::Mode::global;
}

core::OutRecord NodeTarget::record(std::span<const std::byte> frame, core::WallTime time) const {
  core::OutRecord out;
  out.topic = core::topic::kTelemetry;
  out.key = key_;
  out.value = std::string(reinterpret_cast<const char*>(frame.data()), frame.size());
  out.timestamp = core::nanoseconds(time);
  return out;
}

void NodeTarget::name(const collectors::Sweep& sweep, std::vector<core::OutRecord>& out) {
  if (sweep.monotonic() - named_since_ > kNamesEvery) {
    named_.clear();
    named_since_ = sweep.monotonic();
  }
  std::vector<core::DictionaryEntry> names;
  if (named_.empty()) {
    core::DictionaryEntry node;
    node.hash = header_.worker;
    node.type = core::DictionaryType::node;
    node.name = node_;
    names.push_back(node);
  }
  for (const auto& sample : sweep.samples()) {
    if (!named_.insert(sample.series->hash).second) continue;
    core::DictionaryEntry entry;
    entry.hash = sample.series->hash;
    entry.type = core::DictionaryType::series;
    entry.name = sample.series->name;
    names.push_back(entry);
  }
  for (std::size_t at = 0; at < names.size(); at += kRowsPerFrame) {
    ++header_.sequence;
    const auto part = std::span(names).subspan(at, std::min(kRowsPerFrame, names.size() - at));
    if (const auto frame = writer_.dictionary(header_, part).finish())
      out.push_back(record(*frame, sweep.time()));
  }
}

std::vector<core::OutRecord> NodeTarget::sweep(const collectors::Sweep& sweep) {
  std::vector<core::OutRecord> out;
  header_.time = core::nanoseconds(sweep.time());
  name(sweep, out);
  for (std::size_t at = 0; at < sweep.samples().size(); at += kRowsPerFrame) {
    const auto part =
        sweep.samples().subspan(at, std::min(kRowsPerFrame, sweep.samples().size() - at));
    rows_.clear();
    for (const auto& sample : part) {
      rows_.push_back(
          {sample.series->hash, header_.time, sample.value, sample.series->counter ? 1U : 0U});
    }
    ++header_.sequence;
    if (const auto frame = writer_.system(header_, rows_).finish())
      out.push_back(record(*frame, sweep.time()));
  }
  return out;
}

core::OutRecord NodeTarget::died(const core::Lifecycle& death, core::WallTime now) {
  header_.time = core::nanoseconds(now);
  ++header_.sequence;
  const auto frame = writer_.lifecycle(header_, ingest::encode_lifecycle(death)).finish();
  // A few hundred bytes: it always fits.
  return record(frame ? *frame : std::span<const std::byte>{}, now);
}

}  // namespace tocsin::app
