#include "collectors/hook/client/client.h"

#include <pthread.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "core/signals_blocked.h"

namespace tocsin::hook {
namespace {

using std::chrono::milliseconds;

constexpr auto kOpenAgain = std::chrono::seconds(1);
constexpr auto kCommandWait = std::chrono::seconds(5);  // woken earlier by whatever comes
// What close() needs beside the time for delivery: stopping threads, reporting.
constexpr auto kGrace = milliseconds(500);
// And for writing what is left to the disk, when nothing answers.
constexpr auto kSpooling = milliseconds(2000);

}  // namespace

void Presence::announce(const Session& session, core::Duration now) {
  if (announced_.count() >= 0 && now - announced_ < Session::kHeartbeat) return;
  announced_ = now;
  const Identity& identity = session.identity();
  sender_.announce({identity.run, identity.worker, session.incarnation()},
                   {identity.pid, identity.pid_start, identity.boot_id, namespace_});
}

Client::Client(SessionOptions session, CapturePlan plan, Endpoints endpoints,
               std::shared_ptr<Trouble> trouble, const core::Clock& clock, ClientOptions options,
               OpenRawPlace raw)
    : clock_(clock),
      options_(std::move(options)),
      queue_(options_.queue_bytes),
      raw_queue_(plan.config().raw),
      session_(std::move(session), std::move(plan), clock, queue_,
               raw == nullptr ? nullptr : &raw_queue_),
      board_(session_),
      reader_(
          options_.command_share, core::to_text(session_.identity().run) + "/",
          [this] { return open_commands(); },
          [this](const core::RecordView& record) { board_.take(record, clock_.now()); }),
      endpoints_(std::move(endpoints)),
      trouble_(std::move(trouble)),
      sender_(endpoints_, session_, queue_, clock, *trouble_),
      raw_sender_(raw_queue_, std::move(raw), clock),
      judge_watch_(endpoints_.judged),
      report_(options_.report) {
  if (options_.judged) judge_watch_.known();
}

core::Status Client::judge_here(const std::string& rules, const std::string& stop) {
  auto opened = JudgeLink::open(
      rules, stop, [this](const core::RecordView& record) { board_.take(record, clock_.now()); });
  if (!opened) {
    judge_error_ = opened.error().message;
    return opened.error();
  }
  judge_ = *std::move(opened);
  judge_watch_.known();
  queue_.set_tap([this](const core::OutRecord& record) { judge_->offer(record, clock_.now()); });
  return core::ok();
}

void Client::charge_judging() {
  if (judge_ == nullptr) return;
  const core::Duration cost = judge_->take_cost();
  if (cost > core::Duration{0}) session_.judged(cost);
}

void Client::start(const std::shared_ptr<Client>& self) {
  const core::SignalsBlocked blocked;  // inherited by the threads and by those of the transport
  self->raw_queue_.set_first([weak = std::weak_ptr<Client>(self)] { start_raw(weak); });
  self->handover_.start(2);
  std::thread([self] {
    pthread_setname_np(pthread_self(), "tocsin-send");
    self->send_loop();
  }).detach();
  std::thread([self] {
    pthread_setname_np(pthread_self(), "tocsin-command");
    self->command_loop();
  }).detach();
}

// On the training thread, at the first raw tensor: who sends none has no thread for it.
void Client::start_raw(const std::weak_ptr<Client>& self) {
  const std::shared_ptr<Client> alive = self.lock();
  if (alive == nullptr) return;
  const core::SignalsBlocked blocked;
  alive->raw_begun_ = true;
  std::thread([alive] {
    pthread_setname_np(pthread_self(), "tocsin-raw");
    alive->raw_sender_.run();
  }).detach();
}

void Client::close_raw(core::Duration until) {
  if (!raw_begun_) return;
  const auto left = std::max<core::Duration>(until - clock_.monotonic(), core::Duration{0});
  // What is under way when the time is over is given up within a moment (RawPlace::Stop).
  if (!raw_queue_.wait_until_empty(left)) (void)raw_queue_.wait_until_empty(kGrace);
  raw_queue_.give_up();
  raw_sender_.wait_until_over(kGrace);
}

void Client::send_loop() {
  report_.opened(session_.identity(), session_.incarnation(), judge_ != nullptr);
  while (true) {
    presence_.announce(session_, clock_.monotonic());
    const core::Duration wait = sender_.turn();
    charge_judging();
    if (sender_.sent() > 0) judge_watch_.look(clock_.monotonic());
    const auto [request, until] = handover_.take(sender_.publisher());
    if (request == Handover::Request::none) {
      queue_.wait(wait, sender_.stuck());
      continue;
    }
    bool done = sender_.flush(until - clock_.monotonic());
    while (!done && clock_.monotonic() < until) {
      queue_.wait(std::min<core::Duration>(Sender::kStuckWait, until - clock_.monotonic()), true);
      done = sender_.flush(until - clock_.monotonic());
    }
    if (request == Handover::Request::close && !done) {
      sender_.spool_left();
      queue_.purge();
    }
    if (request == Handover::Request::close && done) judge_watch_.last_look();
    handover_.answer(done);
    if (request == Handover::Request::close) return leave_send_loop();
  }
}

void Client::leave_send_loop() {
  handover_.wait_until_alone();
  sender_.release();
  endpoints_ = {};
  handover_.leave();
}

// The number of partitions comes from the publisher, which the other thread opens.
core::Result<std::unique_ptr<core::RecordSource>> Client::open_commands() {
  const std::shared_ptr<core::RecordPublisher> publisher = handover_.wait_for_publisher(kOpenAgain);
  if (publisher == nullptr) return core::Error{core::Code::cancelled, "not yet"};
  return endpoints_.commands(*publisher);
}

void Client::command_loop() {
  while (!closing_.load()) {
    const core::WallTime now = clock_.now();
    const core::WallTime next =
        std::min(board_.expire(now).value_or(now + kCommandWait), now + kCommandWait);
    const auto read = reader_.turn(std::chrono::ceil<milliseconds>(next - now));
    if (!read) trouble_->set("commands: " + read.error().message);
  }
  reader_.close();
  handover_.leave();
}

bool Client::request(Handover::Request what, milliseconds timeout) {
  handover_.ask({what, clock_.monotonic() + timeout});
  queue_.wake();
  const bool spools = what == Handover::Request::close && sender_.spools();
  return handover_.wait_for_answer(timeout + kGrace + (spools ? kSpooling : milliseconds(0)));
}

bool Client::flush(milliseconds timeout) {
  const core::Duration until = clock_.monotonic() + timeout;
  const bool sent = request(Handover::Request::flush, timeout);
  const auto left = std::max<core::Duration>(until - clock_.monotonic(), core::Duration{0});
  return raw_queue_.wait_until_empty(left) && sent;
}

bool Client::close(std::shared_ptr<Client> self, std::string_view outcome, std::string_view error,
                   std::optional<int> exit_code, milliseconds timeout) {
  if (outcome.empty()) {
    self->session_.leave("closed");
  } else {
    core::Lifecycle end;
    end.event = core::LifecycleEvent::end;
    // Scripts know that they were stopped; who asked stands in the command.
    const bool by_person = outcome == "stopped_by_rule" && self->board_.stopped_by_person();
    end.outcome = by_person ? "stopped_by_person" : std::string(outcome);
    end.error = std::string(error);
    end.exit_code = exit_code;
    self->session_.end(end);
  }
  self->closing_.store(true);
  const auto end = std::chrono::steady_clock::now() + timeout;
  const core::Duration until = self->clock_.monotonic() + timeout;
  self->raw_sender_.close(until);
  self->handover_.close();
  self->reader_.wake();
  const bool delivered = self->request(Handover::Request::close, timeout);
  self->close_raw(until);
  // The last thread to leave destroys the transport; give that a moment, so that a program which
  // ends right after close() does not race with it.
  self->handover_.wait_until_all_left(kGrace);
  // Judged meanwhile by its own thread; what is left gets what is left of the time.
  if (self->judge_ != nullptr) {
    const auto left =
        std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
    (void)self->judge_->finish(std::max(left, kGrace));
    self->charge_judging();  // what it judged since the last turn of the loop
  }
  self->report_.ended(self->session_.incarnation(), delivered);
  return delivered;
}

std::string Client::loss() const {
  std::uint64_t dropped = 0;
  for (const std::uint64_t frames : queue_.dropped()) dropped += frames;
  const std::uint64_t waiting = queue_.size();
  const std::uint64_t unconfirmed = sender_.unconfirmed();
  const std::uint64_t spooled = sender_.spool().waiting();
  std::string raw = raw_queue_.loss();
  if (const std::string why = raw_sender_.trouble(); !raw.empty() && !why.empty())
    raw += ": " + why;
  if (dropped + waiting + unconfirmed + spooled == 0) return raw;
  if (!raw.empty()) raw = "; " + raw;
  std::string out =
      std::to_string(dropped + waiting + spooled) + " records did not reach " + options_.out;
  if (spooled > 0) {
    out += "; " + std::to_string(spooled) + " of them wait in " + options_.spool +
           " for: tocsin sync " + options_.spool + " --to " + options_.out;
  }
  if (unconfirmed > 0) {
    out += ", and up to " + std::to_string(unconfirmed) + " that were sent are not confirmed";
  }
  const std::string why = trouble_->text();
  return (why.empty() ? out : out + ": " + why) + raw;
}

std::string Client::counters() const {
  core::ValueMap out = session_.counters();
  core::ValueMap dropped;
  core::ValueMap pushed;
  const auto dropped_frames = queue_.dropped();
  const auto pushed_frames = queue_.pushed();
  for (std::size_t precedence = 0; precedence < kPrecedences; ++precedence) {
    dropped.emplace_back(std::string(to_string(static_cast<Precedence>(precedence))),
                         dropped_frames[precedence]);
    pushed.emplace_back(std::string(to_string(static_cast<Precedence>(precedence))),
                        pushed_frames[precedence]);
  }
  out.emplace_back("out", options_.out);
  out.emplace_back("judged", judge_watch_.judged());
  out.emplace_back("warnings", core::ValueList(options_.warnings.begin(), options_.warnings.end()));
  out.emplace_back("connected", sender_.sent() > 0);
  out.emplace_back("sent_records_total", sender_.sent());
  out.emplace_back("confirmed_records_total", sender_.confirmed());
  out.emplace_back("queued_records_total", std::move(pushed));
  out.emplace_back("dropped_records_total", std::move(dropped));
  out.emplace_back("sender_wakes_total", queue_.wakes());
  out.emplace_back("queue_bytes", queue_.bytes());
  out.emplace_back("waiting_records", std::uint64_t{queue_.size()});
  out.emplace_back("spooled_records", sender_.spool().waiting());
  out.emplace_back("spooled_records_total", sender_.spool().added_ever());
  out.emplace_back("spool_bytes", sender_.spool().bytes());
  out.emplace_back("unconfirmed_records", sender_.unconfirmed());
  out.emplace_back("command_reader", std::string(to_string(reader_.role())));
  out.emplace_back("commands_received_total", board_.received());
  out.emplace_back("commands_refused_total", board_.refused());
  out.emplace_back("transport_errors_total", trouble_->count());
  out.emplace_back("error", trouble_->text());
  out.emplace_back("wrong_calls", std::string(session_.wrong_calls()));
  core::ValueMap raw = raw_queue_.counters();
  raw.emplace_back("error", raw_sender_.trouble());
  out.emplace_back("raw", std::move(raw));
  if (judge_ != nullptr) out.emplace_back("judge", judge_->stats());
  if (!judge_error_.empty()) {
    out.emplace_back("judge", core::ValueMap{{"error", judge_error_}});
  }
  return core::to_json(out);
}

}  // namespace tocsin::hook
