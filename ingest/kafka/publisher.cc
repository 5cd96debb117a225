#include "ingest/kafka/publisher.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/identity.h"
#include "ingest/kafka/commit_errors.h"
#include "ingest/kafka/deadline.h"

namespace tocsin::ingest {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

milliseconds at_most(milliseconds limit, Clock::time_point deadline) {
  return std::min(limit, left_until(deadline));
}

}  // namespace

KafkaPublisher::KafkaPublisher(const KafkaContext& context, PublisherOptions options,
                               KafkaSource* source)
    : context_(context),
      options_(std::move(options)),
      source_(source),
      committed_(context.telemetry.counter("tocsin_ingest_commits_total", "Commits asked for",
                                           {{"outcome", "committed"}})),
      failed_(context.telemetry.counter("tocsin_ingest_commits_total", "Commits asked for",
                                        {{"outcome", "failed"}})),
      duration_(context.telemetry.histogram("tocsin_ingest_commit_duration_seconds",
                                            "From the call of commit to its answer")) {}

core::Result<std::unique_ptr<KafkaPublisher>> KafkaPublisher::open(const KafkaContext& context,
                                                                   PublisherOptions options) {
  auto* source = dynamic_cast<KafkaSource*>(options.source);
  if (options.source != nullptr && source == nullptr) {
    return core::invalid_argument("the publisher's source is not of this transport");
  }
  std::unique_ptr<KafkaPublisher> publisher(
      new KafkaPublisher(context, std::move(options), source));
  if (publisher->options_.transactional_id.empty()) {
    if (auto opened = publisher->plain(); !opened) return opened.error();
    return publisher;
  }
  // Now, not with the first commit: from here on a predecessor with this id can commit nothing any
  // more, so that what the owner reads back next is the last word; and a transaction that it left
  // open is aborted instead of holding everybody back until it times out.
  const auto deadline = Clock::now() + publisher->options_.commit_timeout;
  if (auto status = publisher->make_ready(deadline); !status) return status.error();
  return publisher;
}

KafkaPublisher::~KafkaPublisher() {
  lose_producer();
  if (plain_) plain_->purge();
}

/// For records outside transactions; a transactional producer takes none.
core::Result<KafkaProducer*> KafkaPublisher::plain() {
  const core::MutexLock lock(plain_mutex_);
  if (!plain_) {
    auto opened = KafkaProducer::open(context_, options_, "");
    if (!opened) return opened.error();
    plain_ = std::move(*opened);
  }
  return plain_.get();
}

core::Status KafkaPublisher::publish(const core::OutRecord& record) {
  auto producer = plain();
  if (!producer) return producer.error();
  return (*producer)->produce(record);
}

core::Status KafkaPublisher::flush(milliseconds timeout) {
  auto producer = plain();
  if (!producer) return producer.error();
  return (*producer)->flush(timeout);
}

core::Result<std::int32_t> KafkaPublisher::partitions(std::string_view topic) {
  auto producer = plain();
  if (!producer) return producer.error();
  return (*producer)->partitions(topic, kMetadataTimeout);
}

core::Status KafkaPublisher::commit(std::span<const core::OutRecord> records,
                                    std::span<const core::Position> positions) {
  const bool plain = options_.transactional_id.empty();
  // Of a plain producer something may be on its way.
  if (records.empty() && positions.empty() && !plain && !options_.ahead) return core::ok();
  const auto start = Clock::now();
  const auto deadline = start + options_.commit_timeout;
  auto status = plain            ? commit_at_least_once(records, positions, deadline)
                : options_.ahead ? commit_behind(records, positions, deadline)
                                 : commit_transaction(records, positions, deadline);
  duration_.observe(std::chrono::duration<double>(Clock::now() - start).count());
  (status ? committed_ : failed_).add();
  return status;
}

Kafka<rd_kafka_topic_partition_list_t> KafkaPublisher::offsets_of(
    std::span<const core::Position> positions) const {
  Kafka<rd_kafka_topic_partition_list_t> list(
      rd_kafka_topic_partition_list_new(static_cast<int>(positions.size())));
  for (const auto& position : positions) {
    if (position.next < 0) continue;
    rd_kafka_topic_partition_list_add(list.get(), context_.full_name(position.where.stream).c_str(),
                                      position.where.partition)
        ->offset = position.next;
  }
  return list;
}

/// Queues all, waiting for room where there is none.
core::Status KafkaPublisher::produce_all(KafkaProducer& producer,
                                         std::span<const core::OutRecord> records,
                                         Deadline deadline) {
  for (const auto& record : records) {
    for (;;) {
      auto status = producer.produce(record);
      if (status) break;
      if (status.error().code != core::Code::resource_exhausted) return status;
      if (ms_until(deadline) == 0) return too_late("queueing records");
      producer.serve(milliseconds{10});
    }
  }
  return core::ok();
}

// ── At least once ────────────────────────────────────────────────────────────────────────────

/// Of a topic that was never written to, the commit asks the cluster first.
bool KafkaPublisher::write_ahead(const core::OutRecord& record) {
  if (!options_.transactional_id.empty() && !options_.ahead) return false;
  auto producer = plain();
  return producer && (*producer)->knows(record.topic) &&
         (*producer)->produce_unserved(record).has_value();
}

core::Status KafkaPublisher::commit_at_least_once(std::span<const core::OutRecord> records,
                                                  std::span<const core::Position> positions,
                                                  Deadline deadline) {
  auto producer = plain();
  if (!producer) return producer.error();
  for (const auto& record : records) {
    if (auto count = (*producer)->partitions(record.topic, at_most(kMetadataTimeout, deadline));
        !count) {
      return count.error();
    }
  }
  if (auto status = produce_all(**producer, records, deadline); !status) return status;
  if (auto status = (*producer)->deliver(deadline); !status) return status;
  return store_positions(positions, deadline);
}

/// What went ahead has to be there before the transaction that remembers having said it.
core::Status KafkaPublisher::commit_behind(std::span<const core::OutRecord> records,
                                           std::span<const core::Position> positions,
                                           Deadline deadline) {
  auto producer = plain();
  if (!producer) return producer.error();
  for (const auto& record : records) {  // the next one of that topic may go ahead
    (void)(*producer)->partitions(record.topic, at_most(kMetadataTimeout, deadline));
  }
  if (auto status = (*producer)->deliver(deadline); !status) return status;
  if (records.empty() && positions.empty()) return core::ok();
  return commit_transaction(records, positions, deadline);
}

/// The library's own synchronous commit has no deadline.
core::Status KafkaPublisher::store_positions(std::span<const core::Position> positions,
                                             Deadline deadline) {
  const auto offsets = offsets_of(positions);
  if (!takes_positions() || offsets->cnt == 0) return core::ok();
  rd_kafka_t* group = source_->group_client();
  if (group == nullptr) return not_a_member();
  struct Queue {
    rd_kafka_queue_t* get;
    ~Queue() { rd_kafka_queue_destroy(get); }
  } queue{rd_kafka_queue_new(group)};
  auto error = rd_kafka_commit_queue(group, offsets.get(), queue.get, nullptr, nullptr);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return kafka_error(error, "committing positions");
  rd_kafka_event_t* event = rd_kafka_queue_poll(queue.get, ms_until(deadline));
  if (event == nullptr) return too_late("committing positions");
  error = rd_kafka_event_error(event);
  rd_kafka_event_destroy(event);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR || error == RD_KAFKA_RESP_ERR__NO_OFFSET) {
    return core::ok();
  }
  return kafka_error(error, "committing positions");
}

// ── Transactions ─────────────────────────────────────────────────────────────────────────────

void KafkaPublisher::lose_producer() {
  if (!transactional_) return;
  transactional_->purge();
  transactional_.reset();
  initialised_ = false;
}

/// A producer that may begin a transaction: started, known to the coordinator, nothing left over.
core::Status KafkaPublisher::make_ready(Deadline deadline) {
  if (!transactional_) {
    auto opened = KafkaProducer::open(context_, options_, options_.transactional_id);
    if (!opened) return opened.error();
    transactional_ = std::move(*opened);
    initialised_ = false;
  }
  if (!initialised_) {
    Kafka<rd_kafka_error_t> error(
        rd_kafka_init_transactions(transactional_->get(), ms_until(deadline)));
    if (error) return failed(std::move(error), "registering the transactional id", false, deadline);
    initialised_ = true;
  }
  if (left_ == Left::to_abort) {
    Kafka<rd_kafka_error_t> error(
        rd_kafka_abort_transaction(transactional_->get(), ms_until(deadline)));
    if (error) return failed(std::move(error), "aborting a transaction", false, deadline);
    left_ = Left::nothing;
  }
  return core::ok();
}

core::Status KafkaPublisher::commit_transaction(std::span<const core::OutRecord> records,
                                                std::span<const core::Position> positions,
                                                Deadline deadline) {
  if (fenced_) {
    return core::Error{
        core::Code::failed_precondition,
        "transactional id " + options_.transactional_id + " was taken over by a newer process"};
  }
  if (left_ == Left::in_doubt) return in_doubt();
  if (!begins_with(records, settled_)) return must_repeat();
  auto rest = records.subspan(settled_.records);
  if (left_ == Left::to_commit) {
    const std::size_t before = content_.records;
    if (const auto settled = settle(rest, deadline); !settled) return settled;
    settled_ = content_of(records.first(settled_.records + before));
    // The caller may have more to say by now than in the call whose answer got lost.
    rest = rest.subspan(before);
    if (rest.empty() && std::equal(positions.begin(), positions.end(), their_positions_.begin(),
                                   their_positions_.end())) {
      settled_ = {};
      return core::ok();
    }
  }
  auto status = write_transaction(rest, positions, deadline);
  if (status) settled_ = {};
  return status;
}

KafkaPublisher::Content KafkaPublisher::content_of(std::span<const core::OutRecord> records) {
  Content content{records.size(), 0};
  for (const auto& record : records) {
    for (const std::string_view part :
         {std::string_view(record.topic), std::string_view(record.key),
          record.value ? std::string_view(*record.value) : std::string_view("null")}) {
      content.hash = content.hash * 0x9E3779B97F4A7C15ULL + core::name_hash(part);
    }
  }
  return content;
}

bool KafkaPublisher::begins_with(std::span<const core::OutRecord> records, const Content& content) {
  return records.size() >= content.records &&
         content_of(records.first(content.records)).hash == content.hash;
}

/// The transaction whose answer did not come in time: asked again, with the same content.
core::Status KafkaPublisher::settle(std::span<const core::OutRecord> records, Deadline deadline) {
  return begins_with(records, content_) ? finish(deadline) : must_repeat();
}

core::Status KafkaPublisher::write_transaction(std::span<const core::OutRecord> records,
                                               std::span<const core::Position> positions,
                                               Deadline deadline) {
  if (auto status = make_ready(deadline); !status) return status;
  // Outside the transaction: what fails here leaves nothing to abort, and what is slow here (a
  // second for an unknown topic in 2.0.2) is not inside it.
  for (const auto& record : records) {
    auto status = transactional_->warm_up(record.topic, at_most(kMetadataTimeout, deadline));
    if (!status) return status;
  }
  Kafka<rd_kafka_error_t> error(rd_kafka_begin_transaction(transactional_->get()));
  if (error) return failed(std::move(error), "beginning a transaction", false, deadline);
  if (auto status = produce_all(*transactional_, records, deadline); !status) {
    return abort(status.error(), deadline);
  }
  if (auto status = send_positions(positions, deadline); !status) return status;
  auto status = finish(deadline);
  if (left_ == Left::to_commit) {
    content_ = content_of(records);
    their_positions_.assign(positions.begin(), positions.end());
  }
  return status;
}

/// Before the commit even for one partition: it overlaps the registration of the outputs.
core::Status KafkaPublisher::send_positions(std::span<const core::Position> positions,
                                            Deadline deadline) {
  const auto offsets = offsets_of(positions);
  if (!takes_positions() || offsets->cnt == 0) return core::ok();
  rd_kafka_t* group = source_->group_client();
  if (group == nullptr) return abort(not_a_member(), deadline);
  for (;;) {
    // Fresh each time: the generation in it is what fences a zombie.
    rd_kafka_consumer_group_metadata_t* member = rd_kafka_consumer_group_metadata(group);
    if (member == nullptr) {
      return abort(not_a_member(), deadline);
    }
    Kafka<rd_kafka_error_t> error(rd_kafka_send_offsets_to_transaction(
        transactional_->get(), offsets.get(), member, ms_until(deadline)));
    rd_kafka_consumer_group_metadata_destroy(member);
    if (!error) return core::ok();
    const bool again = rd_kafka_error_is_retriable(error.get()) != 0 && ms_until(deadline) > 0;
    if (!again) return failed(std::move(error), "sending positions", false, deadline);
    transactional_->serve(milliseconds{20});
  }
}

core::Status KafkaPublisher::finish(Deadline deadline) {
  left_ = Left::to_commit;
  for (;;) {
    Kafka<rd_kafka_error_t> error(
        rd_kafka_commit_transaction(transactional_->get(), ms_until(deadline)));
    if (!error) {
      left_ = Left::nothing;
      [[maybe_unused]] const auto old = transactional_->take_failure();
      return core::ok();
    }
    const bool again = rd_kafka_error_is_retriable(error.get()) != 0 && ms_until(deadline) > 0;
    if (!again) return failed(std::move(error), "committing a transaction", true, deadline);
    transactional_->serve(milliseconds{20});
  }
}

core::Status KafkaPublisher::abort(core::Error why, Deadline deadline) {
  left_ = Left::to_abort;
  Kafka<rd_kafka_error_t> error(
      rd_kafka_abort_transaction(transactional_->get(), std::max(1000, ms_until(deadline))));
  if (!error) {
    left_ = Left::nothing;
  } else if (rd_kafka_error_is_retriable(error.get()) == 0) {
    lose_producer();  // its successor's registration aborts what it left
    left_ = Left::nothing;
  }
  [[maybe_unused]] const auto purged =
      transactional_ ? transactional_->take_failure() : std::nullopt;
  return why;
}

/// Sorts an error of the transactional calls: try again, abort, or take a new producer.
core::Status KafkaPublisher::failed(Kafka<rd_kafka_error_t> error, std::string_view doing,
                                    bool was_commit, Deadline deadline) {
  const auto code = rd_kafka_error_code(error.get());
  core::Error what{kafka_code(code), std::string(doing) + ": " +
                                         rd_kafka_error_string(error.get()) + " (" +
                                         rd_kafka_err2name(code) + ")"};
  context_.log.warn("kafka_transaction_failed", {{"reason", what.message}});
  if (rd_kafka_error_txn_requires_abort(error.get()) != 0) {
    // A delivery that failed says more than the transaction's "abort me".
    if (auto failure = transactional_->take_failure();
        failure && what.code != core::Code::failed_precondition) {
      what = failure->in(doing);
    }
    if (what.code != core::Code::failed_precondition && what.code != core::Code::invalid_argument &&
        what.code != core::Code::not_found && what.code != core::Code::permission_denied) {
      what.code = core::Code::unavailable;
    }
    return abort(std::move(what), deadline);
  }
  if (rd_kafka_error_is_fatal(error.get()) == 0 && rd_kafka_error_is_retriable(error.get()) != 0) {
    // The same call may be made again; before the commit it is simpler to start over.
    if (was_commit || !initialised_) {
      return core::Error{core::Code::deadline_exceeded, std::move(what.message)};
    }
    what.code = core::Code::deadline_exceeded;
    return left_ == Left::to_abort ? core::Status(what) : abort(std::move(what), deadline);
  }
  // Fatal, or nothing we know: state is ours, so a new producer can say all of it again.
  lose_producer();
  if (was_commit && !is_fencing(code)) {
    left_ = Left::in_doubt;
    return in_doubt();
  }
  left_ = Left::nothing;
  if (is_fencing(code)) {
    fenced_ = true;
    what.code = core::Code::failed_precondition;
  } else if (what.code != core::Code::permission_denied &&
             what.code != core::Code::invalid_argument) {
    what.code = core::Code::unavailable;
  }
  return what;
}

}  // namespace tocsin::ingest
