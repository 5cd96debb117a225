// Telemetry through a real Kafka: rows per CPU-second of the engine's path (our source, decode, state,
// rules) beside R, a bare librdkafka consumer with the same settings that touches one byte per record,
// on the same topic in the same run. Frames of 100 rows, single records, and the same frames as other
// producers lay them out. Each reading is a process of its own, so that none finds the heap as another
// left it; they take turns, and a ratio is that of two neighbours, the median of all rounds.
//
//   pipeline_kafka [--only framed,single,layouts] [--rounds 5] [bootstrap]
//                                                      (default $KAFKA_BOOTSTRAP_SERVERS)
//   pipeline_kafka --read WHO PREFIX RECORDS ROWS BOOTSTRAP   one reading; prints its CPU seconds
#include <librdkafka/rdkafka.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>

#include "app/process/allocator.h"
#include "bench/bench_report.h"
#include "bench/pipeline_feed.h"
#include "bench/rule_sets.h"
#include "core/record.h"
#include "ingest/ingest.h"
#include "rules/rules.h"

namespace {

using namespace tocsin;
using namespace std::chrono_literals;

constexpr std::int32_t kPartitions = 4;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

[[noreturn]] void fail(const std::string& message) {
  std::cerr << "pipeline_kafka: " << message << "\n";
  std::exit(2);
}

/// What reads; `bare` is R, `checking` R that also decodes each frame's head and checks its checksum.
const std::map<std::string, std::string>& rules_of() {
  static const std::map<std::string, std::string> kRules = {
      {"one", "rules: [vanishing_gradient]\n"},
      {"declared",  // of bench/deployed.py and bench/peers/streams.py
       "rules: [{name: weak, select: 'tensor(\".*\"){role=\"gradient\"}', window: last 10 steps, "
       "when: "
       "'mean(abs_mean) < 1e-4'}]\n"},
      {"eight",
       "rules: [exploding_tensor, vanishing_gradient, loss_not_decreasing, weight_update_ratio, "
       "overfit,\n"
       "        {use: all_zero, with: {collection_names: [gradients, weights]}}, "
       "stalled_training_rule, cpu_bottleneck]\n"},
      {"tensors", bench::kTensorRules}};
  return kRules;
}

// Poll, touch one byte (or, with `checks`, what every reader of frames has to: all of them), destroy.
double bare(const std::string& bootstrap, const std::string& topic, std::uint64_t total,
            bool checks) {
  std::array<char, 512> error{};
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  for (const auto& [key, value] :
       {std::pair<const char*, const char*>{"bootstrap.servers", bootstrap.c_str()},
        {"group.id", "bench-bare"},
        {"enable.auto.commit", "false"},
        {"enable.auto.offset.store", "false"},
        {"isolation.level", "read_committed"},
        {"fetch.wait.max.ms", "20"},
        {"queued.min.messages", "1000000"},
        {"queued.max.messages.kbytes", "16384"},
        {"socket.nagle.disable", "true"}}) {
    rd_kafka_conf_set(conf, key, value, error.data(), error.size());
  }
  rd_kafka_t* consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error.data(), error.size());
  rd_kafka_poll_set_consumer(consumer);
  auto* list = rd_kafka_topic_partition_list_new(kPartitions);
  for (std::int32_t p = 0; p < kPartitions; ++p)
    rd_kafka_topic_partition_list_add(list, topic.c_str(), p)->offset = 0;
  const double start = cpu_seconds();
  rd_kafka_assign(consumer, list);
  std::uint64_t seen = 0;
  std::uint64_t sink = 0;
  while (seen < total) {
    rd_kafka_message_t* message = rd_kafka_consumer_poll(consumer, 1000);
    if (message == nullptr) continue;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      sink += *static_cast<const unsigned char*>(message->payload);
      if (checks &&
          !ingest::decode_frame({static_cast<const std::byte*>(message->payload), message->len})) {
        fail("not a frame");
      }
      ++seen;
    }
    rd_kafka_message_destroy(message);
  }
  const double cost = cpu_seconds() - start;
  if (sink == 42) std::puts("");  // keeps the read
  rd_kafka_topic_partition_list_destroy(list);
  rd_kafka_consumer_close(consumer);
  rd_kafka_destroy(consumer);
  return cost;
}

double engine(ingest::Transport& transport, const std::string& yaml, std::uint64_t total,
              std::uint64_t rows) {
  app::keep_freed_memory();  // as the program does
  rules::RulesConfig config;
  config::Diagnostics problems;
  const auto document =
      config::Document::parse(yaml, "bench", config::process_environment(), problems);
  document->read(problems, [&](config::Reader& root) { rules::read_rules(root, config); });
  if (problems.has_errors()) fail(config::to_text(problems.items().front()));
  rules::EngineOptions engine_options;
  engine_options.cluster = "bench";
  auto made = rules::Engine::create(std::move(config), engine_options);
  ingest::SourceOptions source_options;
  source_options.topics = {"telemetry"};
  source_options.start = ingest::Start::beginning;
  auto source = transport.source(source_options);
  if (!made || !source) fail("cannot open");
  ingest::JsonScalarDecoder json;
  const double start = cpu_seconds();
  std::uint64_t seen = 0;
  while (seen < total) {
    (void)(*source)->poll(1000ms, 2048, [&](const core::RecordView& record) {
      ++seen;
      const rules::RecordRef ref{"tocsin.telemetry.v1", record.stream, record.partition,
                                 record.offset, core::wall_time(record.timestamp)};
      (void)ingest::decode_telemetry(
          record, json, [&](const core::FrameView& frame, const core::FrameBody& body) {
            (*made)->on_frame(frame, body, ref, core::wall_time(record.timestamp));
          });
    });
    for (const std::int32_t partition : (*made)->pending()) (void)(*made)->take(partition);
  }
  const double cost = cpu_seconds() - start;
  if ((*made)->stats().rows < rows) fail("rows were lost");
  (*source)->close(1s);
  return cost;
}

ingest::TopicsConfig topics_at(const std::string& prefix) {
  ingest::TopicsConfig topics;
  topics.prefix = prefix;
  topics.partitions = kPartitions;
  return topics;
}

int read_once(const std::array<std::string, 5>& args) {
  const auto& [who, prefix, records, rows, bootstrap] = args;
  const std::uint64_t total = std::stoull(records);
  double cost = 0;
  if (who == "bare" || who == "checking") {
    cost = bare(bootstrap, ingest::full_topic_name(prefix, "telemetry"), total, who == "checking");
  } else {
    const auto transport = bench::open_topics(bootstrap, topics_at(prefix));
    cost = engine(*transport, rules_of().at(who), total, std::stoull(rows));
  }
  std::printf("%.6f\n", cost);
  return 0;
}

class Bench {
 public:
  Bench(std::string self, std::string bootstrap, int rounds)
      : self_(std::move(self)), bootstrap_(std::move(bootstrap)), rounds_(rounds) {}

  void framed() {
    const bench::FeedOf what{.name = "framed"};
    const auto prefix = fed(what);
    const Rates rates = in_turns({{"bare", prefix},
                                  {"one", prefix},
                                  {"eight", prefix},
                                  {"tensors", prefix},
                                  {"checking", prefix}},
                                 what);
    bench::figure("R: bare librdkafka, framed rows", median(rates[0]), "M rows/CPU-s");
    bench::figure("R with the checksum of each frame / R", ratio(rates[4], rates[0]), "ratio");
    judged("decode + state + 1 rule", median(rates[1]), "M rows/CPU-s", 12);
    judged("decode + state + 1 rule / R", ratio(rates[1], rates[0]), "ratio", 0.75);
    bench::figure("decode + state + all 8 rules", median(rates[2]), "M rows/CPU-s");
    judged("decode + state + all 8 rules / R", ratio(rates[2], rates[0]), "ratio", 0.5);
    bench::figure("decode + state + all tensor rules", median(rates[3]), "M rows/CPU-s");
    judged("decode + state + all tensor rules / R", ratio(rates[3], rates[0]), "ratio", 0.25);
  }

  void single() {
    const bench::FeedOf what{.name = "single", .rows = 1, .tensors = 100, .steps = 1000};
    const auto prefix = fed(what);
    const Rates rates = in_turns({{"bare", prefix}, {"one", prefix}, {"eight", prefix}}, what);
    bench::figure("R: bare librdkafka, single records", median(rates[0]), "M rows/CPU-s");
    bench::figure("single records, 1 rule", median(rates[1]), "M rows/CPU-s");
    judged("single records, 1 rule / R", ratio(rates[1], rates[0]), "ratio", 0.92);
    bench::figure("single records, all 8 rules / R", ratio(rates[2], rates[0]), "ratio");
  }

  void layouts() {
    const core::ValueMap java{
        {"compression.type", "none"}, {"batch.size", 16384}, {"linger.ms", 0}};
    const core::ValueMap lz4{{"compression.type", "lz4"}, {"batch.size", 16384}, {"linger.ms", 0}};
    const core::ValueMap large{{"compression.type", "none"}, {"batch.size", 262144}};
    const core::ValueMap both{{"compression.type", "lz4"}, {"batch.size", 262144}};
    std::vector<bench::FeedOf> all{{.name = "ours"},
                                   {.name = "Java's defaults", .producer = java},
                                   {.name = "Java's defaults and lz4", .producer = lz4},
                                   {.name = "batches of 256 KiB", .producer = large},
                                   {.name = "batches of 256 KiB and lz4", .producer = both}};
    std::vector<Reading> readings;
    for (bench::FeedOf& one : all) {
      one.steps = 600;
      const std::string prefix = fed(one);
      readings.push_back({"one", prefix});
      readings.push_back({"bare", prefix});
    }
    const Rates rates = in_turns(readings, all.front());
    bench::figure("1 rule, frames as our producer lays them out", median(rates[0]), "M rows/CPU-s");
    for (std::size_t i = 1; i < all.size(); ++i) {
      judged("  as " + all[i].name + " / ours", ratio(rates[2 * i], rates[0]), "ratio", 0.8);
      bench::figure("  R of that / R of ours", ratio(rates[2 * i + 1], rates[1]), "ratio");
    }
  }

  [[nodiscard]] bool missed() const { return missed_; }

 private:
  struct Reading {
    std::string who;
    std::string prefix;
  };
  using Rates = std::vector<std::vector<double>>;  // M rows per CPU-second: per reading, per round

  std::string fed(const bench::FeedOf& what) {
    static int number = 0;
    const std::string prefix =
        "bench" + std::to_string(std::chrono::system_clock::now().time_since_epoch().count()) +
        "-" + std::to_string(++number);
    std::printf("producing %llu rows, %d to a record: %s …\n",
                static_cast<unsigned long long>(what.total_rows()), what.rows, what.name.c_str());
    std::fflush(stdout);
    bench::feed(what, bootstrap_, topics_at(prefix));
    return prefix;
  }

  Rates in_turns(const std::vector<Reading>& readings, const bench::FeedOf& what) {
    Rates out(readings.size());
    for (int round = 0; round < rounds_; ++round) {
      for (std::size_t i = 0; i < readings.size(); ++i) {
        const double cpu = run(readings[i], what);
        out[i].push_back(static_cast<double>(what.total_rows()) / cpu / 1e6);
      }
    }
    return out;
  }

  double run(const Reading& reading, const bench::FeedOf& what) {
    const std::string command = "'" + self_ + "' --read " + reading.who + " " + reading.prefix +
                                " " + std::to_string(what.total_records()) + " " +
                                std::to_string(what.total_rows()) + " " + bootstrap_;
    FILE* const pipe = ::popen(command.c_str(), "r");
    if (pipe == nullptr) fail("no process");
    double cpu = 0;
    const bool told = std::fscanf(pipe, "%lf", &cpu) == 1;
    if (::pclose(pipe) != 0 || !told || cpu <= 0) fail("a reading failed: " + command);
    return cpu;
  }

  static double median(const std::vector<double>& values) { return bench::quantile(values, 0.5); }
  static double ratio(const std::vector<double>& values, const std::vector<double>& base) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < values.size(); ++i) ratios.push_back(values[i] / base[i]);
    return median(ratios);
  }
  void judged(const std::string& name, double value, const std::string& unit, double target) {
    bench::judged(name, value, unit, target, true);
    missed_ = missed_ || value < target;
  }

  std::string self_;
  std::string bootstrap_;
  int rounds_;
  bool missed_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() == 6 && args[0] == "--read") {
    return read_once({args[1], args[2], args[3], args[4], args[5]});
  }
  std::string only = "framed,single,layouts";
  int rounds = 5;
  std::string bootstrap;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const bool more = i + 1 < args.size();
    if (args[i] == "--only" && more) {
      only = args[++i];
    } else if (args[i] == "--rounds" && more) {
      rounds = std::max(1, std::atoi(args[++i].c_str()));
    } else {
      bootstrap = args[i];
    }
  }
  const char* const given = std::getenv("KAFKA_BOOTSTRAP_SERVERS");
  if (bootstrap.empty() && given != nullptr) bootstrap = given;
  if (bootstrap.empty()) fail("no broker: set KAFKA_BOOTSTRAP_SERVERS (tools/kafka start)");
  std::array<char, 4096> self{};
  if (::readlink("/proc/self/exe", self.data(), self.size() - 1) <= 0) fail("no name of its own");
  Bench all(self.data(), bootstrap, rounds);
  const auto wanted = [&](const char* name) {
    return ("," + only + ",").find("," + std::string(name) + ",") != std::string::npos;
  };
  if (wanted("framed")) all.framed();
  if (wanted("single")) all.single();
  if (wanted("layouts")) all.layouts();
  return all.missed() ? 1 : 0;
}
