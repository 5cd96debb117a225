#include "collectors/hook/client/raw_reader.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace tocsin::hook {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kRawRecords = 64;  // of one poll
constexpr auto kRawPoll = milliseconds(100);
constexpr auto kAgain = milliseconds(10'000);  // for what is there already
constexpr std::uint32_t kMostChunks = 1U << 24;

}  // namespace

RawReader::RawReader(TensorSource source, core::RunUid run, RawConfig raw)
    : source_(std::move(source)), run_(run), raw_(std::move(raw)) {}

core::Status RawReader::poll(milliseconds timeout) {
  const auto polled = source_.source->poll(
      timeout, kRawRecords, [this](const core::RecordView& record) { take(record); });
  if (polled) return core::ok();
  // What is older than the topic keeps is gone; reading goes on behind it.
  return polled.error().code == core::Code::data_loss ? core::ok() : core::Status(polled.error());
}

void RawReader::take(const core::RecordView& record) {
  where_ = {std::string(record.stream), record.partition};
  if (record.offset < next_) return;  // looked at before a seek
  next_ = record.offset + 1;
  ++records_;
  const auto decoded = ingest::decode_frame(record.value);
  if (!decoded) {
    ++refused_[std::string(ingest::to_string(decoded.error()))];
    return;
  }
  if (decoded.frame().header().run != run_) return;
  if (const auto chunk = ingest::tensor_chunk(decoded.frame())) {
    note(decoded.frame(), *chunk, record.offset);
  } else {
    ++refused_["unknown_kind"];
  }
}

void RawReader::note(const core::FrameView& frame, const ingest::TensorChunk& chunk,
                     std::int64_t offset) {
  const core::FrameHeader& header = frame.header();
  const Key key{chunk.name, header.mode, header.step, header.worker};
  const Version version{header.attempt, header.incarnation, header.time};
  const auto [at, fresh] = entries_.try_emplace(key);
  Entry& entry = at->second;
  if (fresh) {
    order_.push_back(key);
    if (order_.size() > kMostTensors) {
      entries_.erase(order_.front());
      order_.pop_front();
    }
  } else if (version < entry.version) {
    return;
  }
  if (fresh || entry.version < version) {
    if (chunk.chunks > kMostChunks) {
      ++refused_["too_large"];
      return;
    }
    entry = Entry{};
    entry.version = version;
    entry.global_step = header.global_step;
    entry.chunks = chunk.chunks;
    entry.first = offset;
  } else if (entry.chunks != chunk.chunks) {
    ++contradicting_;
    return;
  }
  entry.last = offset;
  if (chunk.about) entry.meta = chunk.about->meta;
  if (chunk.dataref) {
    entry.uri = std::string(chunk.dataref->uri);
    entry.offset = chunk.dataref->offset;
    entry.bytes = chunk.dataref->bytes;
    return;
  }
  if (entry.seen.size() <= chunk.chunk) entry.seen.resize(chunk.chunk + 1);
  if (entry.seen[chunk.chunk]) {
    ++duplicates_;
    return;
  }
  entry.seen[chunk.chunk] = true;
  ++entry.count;
}

const RawReader::Entry* RawReader::find(const RawQuery& query, Key& found) const {
  const Key wanted{query.name, query.mode, query.step, query.worker};
  auto at = entries_.lower_bound(wanted);
  if (at == entries_.end() || at->first.name != query.name || at->first.mode != query.mode ||
      at->first.step != query.step || (query.worker != 0 && at->first.worker != query.worker)) {
    return nullptr;
  }
  found = at->first;
  return &at->second;
}

core::Result<RawValue> RawReader::read(const RawQuery& query, milliseconds timeout) {
  const auto until = steady_clock::now() + timeout;
  const auto all = std::max(until, steady_clock::now() + kAgain);
  Key key;
  // All that is there first: a later launch may have measured the step again.
  while (true) {
    const std::uint64_t before = records_;
    if (auto polled = poll(milliseconds(0)); !polled) return polled.error();
    if (records_ != before) continue;
    if (source_.source->at_end() || steady_clock::now() >= all) break;
    if (auto polled = poll(kRawPoll); !polled) return polled.error();
  }
  const Entry* entry = find(query, key);
  while ((entry == nullptr || !entry->whole()) && steady_clock::now() < until) {
    if (auto polled = poll(kRawPoll); !polled) return polled.error();
    entry = find(query, key);
  }
  if (entry == nullptr) return core::not_found("no elements of it were sent at this step");
  if (!entry->whole()) {
    return core::not_found("of its " + std::to_string(entry->chunks) + " chunks " +
                           std::to_string(entry->count) + " are there");
  }
  return entry->uri.empty() ? from_topic(key, *entry) : from_object(key, *entry);
}

bool RawReader::assemble(const core::FrameView& frame, const Key& key, const Version& version,
                         ingest::TensorAssembly& parts) {
  const core::FrameHeader& header = frame.header();
  const auto chunk = ingest::tensor_chunk(frame);
  if (!chunk || header.run != run_ ||
      Key{chunk->name, header.mode, header.step, header.worker} != key ||
      Version{header.attempt, header.incarnation, header.time} != version) {
    return false;
  }
  if (parts.add(*chunk) == ingest::TensorAssembly::Added::contradicts) ++contradicting_;
  return true;
}

core::Result<RawValue> RawReader::value_of(const ingest::TensorAssembly& parts,
                                           const Entry& entry) {
  auto data = parts.take();
  if (!data) return core::Error{core::Code::data_loss, parts.wrong()};
  RawValue out;
  out.dtype = parts.dtype();
  out.dims = parts.dims();
  out.data = *std::move(data);
  out.meta = entry.meta;
  out.global_step = entry.global_step;
  return out;
}

core::Result<RawValue> RawReader::from_topic(const Key& key, const Entry& entry) {
  if (auto sought = source_.source->seek({where_, entry.first}); !sought) return sought.error();
  ingest::TensorAssembly parts;
  const auto until = steady_clock::now() + kAgain;
  bool past = false;
  while (!past && !parts.whole() && steady_clock::now() < until) {
    const auto polled =
        source_.source->poll(kRawPoll, kRawRecords, [&](const core::RecordView& record) {
          past = past || record.offset >= entry.last;
          const auto decoded = ingest::decode_frame(record.value);
          if (decoded) (void)assemble(decoded.frame(), key, entry.version, parts);
        });
    if (!polled && polled.error().code != core::Code::data_loss) return polled.error();
  }
  // The next look goes on behind what was seen, also of what came in the meantime.
  if (auto sought = source_.source->seek({where_, next_}); !sought) return sought.error();
  auto out = value_of(parts, entry);
  if (out) out->step = key.step;
  return out;
}

core::Result<RawValue> RawReader::from_object(const Key& key, const Entry& entry) {
  const std::string place = entry.uri.substr(0, entry.uri.find('/', entry.uri.find("://") + 3));
  std::unique_ptr<BlobStore>& store = stores_[place];
  if (store == nullptr) {
    auto opened = blobs_of(entry.uri, raw_);
    if (!opened) return opened.error();
    store = *std::move(opened);
  }
  const auto bytes = store->get(entry.uri, entry.offset, entry.bytes);
  if (!bytes) return bytes.error();
  ingest::TensorAssembly parts;
  std::span<const std::byte> rest = *bytes;
  while (rest.size() >= core::kFrameHeaderBytes) {
    core::FrameHeader header;
    std::memcpy(static_cast<void*>(&header), rest.data(), sizeof header);
    const std::size_t size = std::size_t{header.header_length} + header.body_length;
    const auto decoded = ingest::decode_frame(rest.first(std::min(size, rest.size())));
    if (!decoded) {
      const std::string code(ingest::to_string(decoded.error()));
      ++refused_[code];
      return core::Error{core::Code::data_loss,
                         entry.uri + ": " + code + ": " + std::string(decoded.detail())};
    }
    if (!assemble(decoded.frame(), key, entry.version, parts)) {
      return core::Error{core::Code::data_loss, entry.uri + " holds another tensor there"};
    }
    rest = rest.subspan(size);
  }
  auto out = value_of(parts, entry);
  if (out) out->step = key.step;
  return out;
}

core::ValueMap RawReader::counters() const {
  core::ValueMap refused;
  for (const auto& [code, count] : refused_) refused.emplace_back(code, count);
  return {{"records_total", records_},
          {"tensors", std::uint64_t{entries_.size()}},
          {"duplicates_total", duplicates_},
          {"contradicting_total", contradicting_},
          {"refused_total", std::move(refused)}};
}

}  // namespace tocsin::hook
