#include "bench/latency_floor.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <initializer_list>
#include <iostream>
#include <thread>
#include <utility>
#include <vector>

#include "ingest/ingest.h"

namespace tocsin::bench {
namespace {

constexpr int kPatienceMs = 10'000;
constexpr std::size_t kBatch = 2048;

[[noreturn]] void give_up(const std::string& what, const std::string& why) {
  std::cerr << "floor: " << what << ": " << why << "\n";
  std::_Exit(2);
}

void must(rd_kafka_resp_err_t error, const char* what) {
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) give_up(what, rd_kafka_err2str(error));
}
void must(rd_kafka_error_t* error, const char* what) {
  if (error != nullptr) give_up(what, rd_kafka_error_string(error));
}

using Settings = std::initializer_list<std::pair<const char*, std::string>>;

rd_kafka_t* client(rd_kafka_type_t type, const Settings& settings) {
  char text[512];
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  for (const auto& [key, value] : settings) {
    if (rd_kafka_conf_set(conf, key, value.c_str(), text, sizeof text) != RD_KAFKA_CONF_OK)
      give_up(key, text);
  }
  if (type == RD_KAFKA_PRODUCER) {
    // Without one, 2.0.2 waits in slices of 10 ms when it flushes.
    rd_kafka_conf_set_dr_msg_cb(conf, [](rd_kafka_t*, const rd_kafka_message_t* message, void*) {
      must(message->err, "delivering");
    });
  }
  rd_kafka_t* made = rd_kafka_new(type, conf, text, sizeof text);
  if (made == nullptr) give_up("client", text);
  return made;
}

enum class Guarantee { exactly_once, at_least_once, none };

struct Route {
  std::string name;
  std::string from;
  std::string to;
  std::size_t bytes;  // of a record
  Guarantee guarantee;
};

}  // namespace

class Floor::Link {
 public:
  Link(const FloorOptions& options, const Route& route)
      : route_(route),
        good_key_(options.good_key),
        value_(std::max<std::size_t>(route.bytes, 1), 'x') {
    const std::string id = options.prefix + "-floor-" + route.name;
    consumer_ = client(RD_KAFKA_CONSUMER, {{"bootstrap.servers", options.bootstrap},
                                           {"group.id", id},
                                           {"enable.auto.commit", "false"},
                                           {"isolation.level", "read_committed"},
                                           {"auto.offset.reset", "earliest"},
                                           {"partition.assignment.strategy", "cooperative-sticky"},
                                           {"fetch.wait.max.ms", "100"},
                                           {"socket.nagle.disable", "true"}});
    rd_kafka_poll_set_consumer(consumer_);
    if (route.guarantee == Guarantee::exactly_once) {
      producer_ = client(RD_KAFKA_PRODUCER, {{"bootstrap.servers", options.bootstrap},
                                             {"transactional.id", id},
                                             {"linger.ms", "0"},
                                             {"retry.backoff.ms", "10"},
                                             {"compression.type", "lz4"},
                                             {"socket.nagle.disable", "true"}});
      must(rd_kafka_init_transactions(producer_, kPatienceMs), "registering");
    } else {
      producer_ = client(RD_KAFKA_PRODUCER, {{"bootstrap.servers", options.bootstrap},
                                             {"enable.idempotence", "true"},
                                             {"linger.ms", "0"},
                                             {"compression.type", "lz4"},
                                             {"socket.nagle.disable", "true"}});
    }
    to_ = rd_kafka_topic_new(producer_, route.to.c_str(), nullptr);
    rd_kafka_topic_partition_list_t* topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, route.from.c_str(), RD_KAFKA_PARTITION_UA);
    must(rd_kafka_subscribe(consumer_, topics), "subscribing");
    rd_kafka_topic_partition_list_destroy(topics);
    thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  }

  ~Link() {
    thread_.request_stop();
    thread_.join();
    // So that the next turn does not begin with what this one had read already.
    with_offsets([this](rd_kafka_topic_partition_list_t* offsets) {
      (void)rd_kafka_commit(consumer_, offsets, 0);
    });
    rd_kafka_consumer_close(consumer_);
    rd_kafka_destroy(consumer_);
    rd_kafka_topic_destroy(to_);
    rd_kafka_destroy(producer_);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  [[nodiscard]] bool ready() const { return ready_; }

 private:
  void work(const std::stop_token& stop) {
    std::vector<std::string> keys;
    while (!stop.stop_requested()) {
      keys.clear();
      int wait = 50;
      for (std::size_t i = 0; i < kBatch; ++i) {
        rd_kafka_message_t* message = rd_kafka_consumer_poll(consumer_, wait);
        if (message == nullptr) break;
        wait = 0;
        if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
          std::string key(static_cast<const char*>(message->key), message->key_len);
          if (key != good_key_) keys.push_back(std::move(key));
        }
        rd_kafka_message_destroy(message);
      }
      if (!ready_) look_for_partitions();
      if (!keys.empty()) write(keys);
      rd_kafka_poll(producer_, 0);
    }
  }

  void look_for_partitions() {
    rd_kafka_topic_partition_list_t* assigned = nullptr;
    must(rd_kafka_assignment(consumer_, &assigned), "assignment");
    ready_ = assigned->cnt > 0;
    rd_kafka_topic_partition_list_destroy(assigned);
  }

  template <typename Use>
  void with_offsets(Use use) {
    rd_kafka_topic_partition_list_t* offsets = nullptr;
    must(rd_kafka_assignment(consumer_, &offsets), "assignment");
    must(rd_kafka_position(consumer_, offsets), "position");
    use(offsets);
    rd_kafka_topic_partition_list_destroy(offsets);
  }

  void produce(const std::vector<std::string>& keys) {
    for (const auto& key : keys) {
      if (rd_kafka_produce(to_, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, value_.data(),
                           value_.size(), key.data(), key.size(), nullptr) != 0) {
        must(rd_kafka_last_error(), "producing");
      }
    }
  }

  void write(const std::vector<std::string>& keys) {
    if (route_.guarantee != Guarantee::exactly_once) {
      produce(keys);
      if (route_.guarantee == Guarantee::none) return;
      must(rd_kafka_flush(producer_, kPatienceMs), "flushing");
      with_offsets([this](rd_kafka_topic_partition_list_t* offsets) {
        must(rd_kafka_commit(consumer_, offsets, 0), "committing offsets");
      });
      return;
    }
    must(rd_kafka_begin_transaction(producer_), "beginning");
    produce(keys);
    rd_kafka_consumer_group_metadata_t* member = rd_kafka_consumer_group_metadata(consumer_);
    with_offsets([&](rd_kafka_topic_partition_list_t* offsets) {
      must(rd_kafka_send_offsets_to_transaction(producer_, offsets, member, kPatienceMs),
           "sending offsets");
    });
    rd_kafka_consumer_group_metadata_destroy(member);
    must(rd_kafka_commit_transaction(producer_, kPatienceMs), "committing");
  }

  const Route route_;
  const std::string good_key_;
  std::string value_;
  rd_kafka_t* consumer_ = nullptr;
  rd_kafka_t* producer_ = nullptr;
  rd_kafka_topic_t* to_ = nullptr;
  std::atomic<bool> ready_ = false;
  std::jthread thread_;
};

Floor::Floor(const FloorOptions& options) {
  const auto topic = [&](const char* name) {
    return ingest::full_topic_name(options.prefix, name);
  };
  const auto first = options.transactions ? Guarantee::exactly_once : Guarantee::at_least_once;
  links_[0] = std::make_unique<Link>(
      options, Route{"judge", topic("telemetry"), topic("issues"), options.sizes.issue, first});
  links_[1] =
      std::make_unique<Link>(options, Route{"route", topic("issues"), topic("router-outbox"),
                                            options.sizes.notification, Guarantee::exactly_once});
  links_[2] =
      std::make_unique<Link>(options, Route{"deliver", topic("router-outbox"), topic("commands"),
                                            options.sizes.command, Guarantee::none});
}

Floor::~Floor() = default;

bool Floor::ready() const {
  return std::all_of(std::begin(links_), std::end(links_),
                     [](const auto& link) { return link->ready(); });
}

}  // namespace tocsin::bench
