#include "app/api/stream_hub.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "app/api/stream_poll.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kPieceBytes = 64 * 1024;
constexpr std::size_t kStoreLength = 8;

constexpr std::string_view kDataField = "\ndata: ";
constexpr const char* kNotKept = "what came since is not kept";
constexpr std::string_view kEndOfEvent = "\n\n";

}  // namespace

bool StreamFilter::takes(const std::string& type, const std::vector<core::RunUid>& about) const {
  // Everybody must know that what he has seen is not all.
  if (type == "reset") return true;
  if (!types.empty() && !types.contains(type)) return false;
  if (runs.empty() || about.empty()) return true;
  return std::any_of(about.begin(), about.end(),
                     [&](const core::RunUid& run) { return runs.contains(run); });
}

/// One connection's view of the ring.
class StreamReader final : public HttpStream {
 public:
  StreamReader(std::shared_ptr<StreamHub> hub, std::string who, StreamFilter filter)
      : hub_(std::move(hub)), who_(std::move(who)), filter_(std::move(filter)) {}
  ~StreamReader() override { hub_->leave(who_); }

  void attach(std::function<void()> wake) override { hub_->attach(this, std::move(wake)); }
  void detach() override { hub_->detach(this); }
  Piece take() override;
  [[nodiscard]] std::string idle() const override { return ":\n\n"; }
  [[nodiscard]] std::chrono::milliseconds idle_after() const override { return hub_->limits_.idle; }

 private:
  friend class StreamHub;
  [[nodiscard]] bool reads_too_slowly(std::uint64_t from) const;

  std::shared_ptr<StreamHub> hub_;
  const std::string who_;
  const StreamFilter filter_;
  std::string first_;             // before all events: hello, reset
  std::uint64_t sent_ = 0;        // number of the last event that was looked at
  std::uint64_t resumed_to_ = 0;  // what was there at the begin is not held against it
};

// Events from number `from` on that wait for it, beyond what may. Under the hub's lock.
bool StreamReader::reads_too_slowly(std::uint64_t from) const NO_THREAD_SAFETY_ANALYSIS {
  std::size_t waiting = 0;
  const std::uint64_t first = std::max(from, resumed_to_ + 1);
  if (hub_->ring_.empty() || first > hub_->ring_.back().number) return false;
  for (auto i = static_cast<std::size_t>(first - std::min(first, hub_->ring_.front().number));
       i < hub_->ring_.size(); ++i) {
    if (filter_.takes(hub_->ring_[i].type, hub_->ring_[i].runs))
      waiting += hub_->ring_[i].text.size();
    if (waiting > hub_->limits_.waiting_bytes) return true;
  }
  return false;
}

HttpStream::Piece StreamReader::take() {
  const core::MutexLock lock(hub_->mutex_);
  Piece out{std::exchange(first_, {}), false};
  hub_->heard(this);
  const bool lost = !hub_->ring_.empty() && sent_ + 1 < hub_->ring_.front().number;
  if (lost || reads_too_slowly(sent_ + 1)) {
    out.text += hub_->reset("the reader is too slow");
    out.last = true;
    return out;
  }
  while (!hub_->ring_.empty() && sent_ < hub_->ring_.back().number &&
         out.text.size() < kPieceBytes) {
    const auto& event =
        hub_->ring_[static_cast<std::size_t>(sent_ + 1 - hub_->ring_.front().number)];
    sent_ = event.number;
    if (filter_.takes(event.type, event.runs)) out.text += event.text;
  }
  return out;
}

const std::vector<std::string>& StreamHub::types() {
  static const std::vector<std::string> kTypes{"issue",   "delivery", "command", "run", "ack",
                                               "silence", "lag",      "store",   "tick"};
  return kTypes;
}

std::shared_ptr<StreamHub> StreamHub::create(const core::Clock& clock, StreamLimits limits,
                                             core::Gauge* open) {
  std::shared_ptr<StreamHub> out(new StreamHub(clock, limits, open));
  const core::MutexLock lock(out->mutex_);
  out->tell_open();
  return out;
}

StreamHub::StreamHub(const core::Clock& clock, StreamLimits limits, core::Gauge* open)
    : clock_(clock),
      limits_(limits),
      open_gauge_(open),
      store_(core::to_text(core::run_uid_v4()).substr(0, kStoreLength)) {}

std::string StreamHub::framed(std::uint64_t number, std::string_view type,
                              const core::Value& data) const {
  // JSON text has no line break: one line of data.
  return "id: " + store_ + "-" + std::to_string(number) + "\nevent: " + std::string(type) +
         std::string(kDataField) + core::to_json(data) + std::string(kEndOfEvent);
}

std::string StreamHub::as_json(const Event& event) {
  // Its lines are: id, event, data. None of the first two needs an escape.
  const std::string_view text = event.text;
  constexpr std::string_view kIdField = "id: ";
  const std::size_t data = text.find(kDataField) + kDataField.size();
  return "{\"id\":\"" +
         std::string(text.substr(kIdField.size(), text.find('\n') - kIdField.size())) +
         "\",\"event\":\"" + event.type +
         "\",\"data\":" + std::string(text.substr(data, text.size() - data - kEndOfEvent.size())) +
         "}";
}

std::string StreamHub::hello() const {
  return "retry: 2000\n" + framed(newest_, "hello",
                                  core::ValueMap{{"store", store_},
                                                 {"seq", newest_},
                                                 {"as_of", core::to_rfc3339(clock_.now())}});
}

std::string StreamHub::reset(std::string_view reason) const {
  return framed(newest_, "reset",
                core::ValueMap{{"reason", std::string(reason)}, {"seq", newest_}});
}

std::optional<std::uint64_t> StreamHub::place_of(std::string_view id) const {
  if (!id.starts_with(store_ + "-")) return std::nullopt;
  id.remove_prefix(store_.size() + 1);
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (failure != std::errc{} || end != id.data() + id.size() || number > newest_)
    return std::nullopt;
  const bool there = number == newest_ || (!ring_.empty() && number + 1 >= ring_.front().number);
  return there ? std::optional(number) : std::nullopt;
}

bool StreamHub::has_begun() const {
  const core::MutexLock lock(mutex_);
  return begun_;
}

void StreamHub::publish(std::string_view type, const std::vector<core::RunUid>& runs,
                        const core::Value& data) {
  const core::MutexLock lock(mutex_);
  if (!begun_) return;
  ++newest_;
  ring_.push_back({newest_, std::string(type), runs, framed(newest_, type, data)});
  ring_bytes_ += ring_.back().text.size();
  while (ring_.size() > limits_.ring || (ring_bytes_ > limits_.ring_bytes && ring_.size() > 1)) {
    ring_bytes_ -= ring_.front().text.size();
    ring_.pop_front();
  }
  for (auto& [reader, wake] : wakes_) {
    if (!std::exchange(wake.called, true)) wake.call();
  }
}

core::Status StreamHub::enter(const std::string& who) {
  if (open_count_ >= limits_.streams) {
    return core::Error{
        core::Code::resource_exhausted,
        "this process has " + std::to_string(open_count_) + " streams, as many as may be"};
  }
  if (const auto of_one = open_.find(who);
      of_one != open_.end() && of_one->second >= limits_.streams_of_one) {
    return core::Error{
        core::Code::resource_exhausted,
        "you have " + std::to_string(of_one->second) + " streams, as many as may be; close one"};
  }
  begun_ = true;
  ++open_count_;
  ++open_[who];
  tell_open();
  return core::ok();
}

core::Result<std::shared_ptr<HttpStream>> StreamHub::open(const std::string& who,
                                                          StreamFilter filter,
                                                          std::string_view last_event_id) {
  const core::MutexLock lock(mutex_);
  if (auto entered = enter(who); !entered) return entered.error();
  auto out = std::make_shared<StreamReader>(shared_from_this(), who, std::move(filter));
  const auto place = place_of(last_event_id);
  out->first_ = hello();
  if (!last_event_id.empty() && !place) out->first_ += reset(kNotKept);
  out->sent_ = place.value_or(newest_);
  out->resumed_to_ = newest_;
  return std::shared_ptr<HttpStream>(std::move(out));
}

core::Result<std::shared_ptr<HttpStream>> StreamHub::poll(const std::string& who,
                                                          StreamFilter filter,
                                                          std::string_view last_event_id,
                                                          std::chrono::milliseconds patience) {
  const core::MutexLock lock(mutex_);
  if (auto entered = enter(who); !entered) return entered.error();
  auto out = std::make_shared<StreamPoll>(shared_from_this(), who, std::move(filter), patience);
  const auto place = place_of(last_event_id);
  out->sent_ = place.value_or(newest_);
  if (!last_event_id.empty() && !place) out->reset_ = kNotKept;
  out->at_once_ = last_event_id.empty() || patience.count() == 0;
  return std::shared_ptr<HttpStream>(std::move(out));
}

void StreamHub::attach(const HttpStream* reader, std::function<void()> wake) {
  const core::MutexLock lock(mutex_);
  wakes_.insert_or_assign(reader, Wake{std::move(wake), false});
}

void StreamHub::detach(const HttpStream* reader) {
  const core::MutexLock lock(mutex_);
  wakes_.erase(reader);
}

void StreamHub::heard(const HttpStream* reader) {
  if (const auto wake = wakes_.find(reader); wake != wakes_.end()) wake->second.called = false;
}

void StreamHub::tell_open() {
  if (open_gauge_ != nullptr) open_gauge_->set(static_cast<double>(open_count_));
}

void StreamHub::leave(const std::string& who) {
  const core::MutexLock lock(mutex_);
  --open_count_;
  tell_open();
  const auto found = open_.find(who);
  if (found != open_.end() && --found->second == 0) open_.erase(found);
}

}  // namespace tocsin::app
