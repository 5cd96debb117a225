// Framed telemetry through a real Kafka: rows per CPU-second of the engine's path (our source,
// decode, state, rules) beside R, a bare librdkafka consumer that touches one byte per record, on
// the same topic in the same run. usage: pipeline_kafka [bootstrap] (default
// $KAFKA_BOOTSTRAP_SERVERS)
#include <librdkafka/rdkafka.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>

#include "bench/bench_report.h"
#include "core/record.h"
#include "ingest/ingest.h"
#include "rules/rules.h"

namespace {

using namespace tocsin;
using namespace std::chrono_literals;

constexpr int kRows = 100;        // per frame
constexpr int kTensorFrames = 5;  // frames of one step: 500 tensors
constexpr int kRuns = 8;
constexpr int kSteps = 2000;
constexpr int kFrames = kRuns * kSteps * kTensorFrames;
constexpr int kRounds = 3;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void produce(ingest::Transport& transport) {
  ingest::PublisherOptions options;
  options.writer = "bench";
  options.linger = 20ms;
  auto publisher = transport.publisher(options);
  if (!publisher) std::exit((std::cerr << publisher.error().message << "\n", 1));
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(0, 1);
  ingest::FrameWriter writer;
  std::vector<core::SummaryRow> rows(kRows);
  std::vector<std::uint64_t> sequence(kRuns, 0);
  for (int step = 0; step < kSteps; ++step) {
    for (int run = 0; run < kRuns; ++run) {
      const core::RunUid uid = core::run_uid_v5("bench/" + std::to_string(run));
      core::FrameHeader header;
      header.run = uid;
      header.world_size = 1;
      header.mode = core::Mode::train;
      header.step = header.global_step = step;
      header.time = 1767323045678000000 + step * 1'000'000'000LL;
      header.worker = core::name_hash("worker_0");
      header.incarnation = 1;
      const auto send = [&](const core::Result<std::span<const std::byte>>& frame) {
        core::OutRecord record{
            "telemetry", core::to_text(uid),
            std::string(reinterpret_cast<const char*>(frame->data()), frame->size())};
        while (!(*publisher)->publish(record)) (void)(*publisher)->flush(100ms);
      };
      for (int part = 0; part < kTensorFrames; ++part) {
        for (int i = 0; i < kRows; ++i) {
          const int tensor = part * kRows + i;
          core::SummaryRow& row = rows[static_cast<std::size_t>(i)];
          row = {};
          row.name = core::name_hash("gradient/layer" + std::to_string(tensor) + ".weight");
          row.count = 4096;
          row.abs_sum = 40.96 * (1 + 0.1 * noise(random));
          row.sum = noise(random);
          row.sumsq = 4.1 * (1 + 0.1 * noise(random));
          row.m2 = row.sumsq;
          row.min = -0.1 * (1 + 0.1 * std::abs(noise(random)));
          row.max = 0.1 * (1 + 0.1 * std::abs(noise(random)));
          row.negative = 2048;
          row.meta = core::meta::make(core::Dtype::f32,
                                      tensor % 2 == 0 ? core::Role::gradient : core::Role::weight);
        }
        header.sequence = ++sequence[static_cast<std::size_t>(run)];
        send(writer.summary(header, rows).finish());
      }
      const core::StepEndRow end{step, step, header.time - 1000000, header.time, 1, 0};
      header.sequence = ++sequence[static_cast<std::size_t>(run)];
      send(writer.step_ends(header, {&end, 1}).finish());
    }
  }
  if (!(*publisher)->flush(60s))
    std::exit((std::cerr << "the broker did not take the frames\n", 1));
}

struct Cost {
  double cpu = 0;
  double wall = 0;
  std::uint64_t records = 0;
};

// R: poll, touch one byte, destroy; the engine's own consumer settings.
Cost bare(const std::string& bootstrap, const std::string& topic, std::int32_t partitions,
          std::uint64_t total) {
  char error[512];
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  for (const auto& [key, value] :
       {std::pair<const char*, const char*>{"bootstrap.servers", bootstrap.c_str()},
        {"group.id", "bench-bare"},
        {"enable.auto.commit", "false"},
        {"isolation.level", "read_committed"},
        {"fetch.wait.max.ms", "20"},
        {"queued.min.messages", "1000000"},
        {"queued.max.messages.kbytes", "1048576"},
        {"socket.nagle.disable", "true"}}) {
    rd_kafka_conf_set(conf, key, value, error, sizeof error);
  }
  rd_kafka_t* consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error);
  rd_kafka_poll_set_consumer(consumer);
  auto* list = rd_kafka_topic_partition_list_new(partitions);
  for (std::int32_t p = 0; p < partitions; ++p)
    rd_kafka_topic_partition_list_add(list, topic.c_str(), p)->offset = 0;
  const Cost start{cpu_seconds(), wall_seconds(), 0};
  rd_kafka_assign(consumer, list);
  std::uint64_t seen = 0;
  std::uint64_t sink = 0;
  while (seen < total) {
    rd_kafka_message_t* message = rd_kafka_consumer_poll(consumer, 1000);
    if (message == nullptr) continue;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      sink += *static_cast<const unsigned char*>(message->payload);
      ++seen;
    }
    rd_kafka_message_destroy(message);
  }
  const Cost cost{cpu_seconds() - start.cpu, wall_seconds() - start.wall, seen};
  if (sink == 42) std::puts("");  // keeps the read
  rd_kafka_topic_partition_list_destroy(list);
  rd_kafka_consumer_close(consumer);
  rd_kafka_destroy(consumer);
  return cost;
}

Cost engine(ingest::Transport& transport, const std::string& yaml, std::uint64_t total) {
  rules::RulesConfig config;
  config::Diagnostics problems;
  const auto document =
      config::Document::parse(yaml, "bench", config::process_environment(), problems);
  document->read(problems, [&](config::Reader& root) { rules::read_rules(root, config); });
  if (problems.has_errors())
    std::exit((std::cerr << config::to_text(problems.items().front()) << "\n", 1));
  rules::EngineOptions engine_options;
  engine_options.cluster = "bench";
  auto made = rules::Engine::create(std::move(config), engine_options);
  ingest::SourceOptions source_options;
  source_options.topics = {"telemetry"};
  source_options.start = ingest::Start::beginning;
  auto source = transport.source(source_options);
  if (!made || !source) std::exit((std::cerr << "cannot open\n", 1));
  ingest::JsonScalarDecoder json;
  const Cost start{cpu_seconds(), wall_seconds(), 0};
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
  const Cost cost{cpu_seconds() - start.cpu, wall_seconds() - start.wall, seen};
  const auto stats = (*made)->stats();
  if (stats.rows < static_cast<std::uint64_t>(kFrames) * kRows)
    std::exit((std::cerr << "rows were lost\n", 1));
  (*source)->close(1s);
  return cost;
}

double median_rate(const std::vector<Cost>& costs) {
  std::vector<double> rates;
  for (const auto& cost : costs)
    rates.push_back(static_cast<double>(kFrames) * kRows / cost.cpu / 1e6);
  return bench::quantile(rates, 0.5);
}

}  // namespace

int main(int argc, char** argv) {
  const char* given = argc > 1 ? argv[1] : std::getenv("KAFKA_BOOTSTRAP_SERVERS");
  if (given == nullptr)
    return std::cerr << "no broker: set KAFKA_BOOTSTRAP_SERVERS (tools/kafka start)\n", 2;
  const std::string bootstrap = given;
  ingest::TransportConfig transport_config;
  transport_config.kafka = core::ValueMap{{"bootstrap.servers", bootstrap}};
  ingest::TopicsConfig topics;
  topics.prefix =
      "bench" + std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
  topics.partitions = 4;
  core::NullLog log;
  core::NullTelemetry telemetry;
  auto transport = ingest::Transport::open(transport_config, topics, log, telemetry);
  if (!transport) return std::cerr << transport.error().message << "\n", 1;
  if (const auto status = (*transport)->ensure_topics(); !status)
    return std::cerr << status.error().message << "\n", 1;
  std::printf("producing %d frames of %d rows …\n", kFrames, kRows);
  produce(**transport);

  const std::uint64_t total = static_cast<std::uint64_t>(kFrames) + kRuns * kSteps;
  const std::string topic = ingest::full_topic_name(topics.prefix, "telemetry");
  const std::string one_rule = "rules: [vanishing_gradient]\n";
  const std::string all_rules =
      "rules: [exploding_tensor, vanishing_gradient, loss_not_decreasing, weight_update_ratio, "
      "overfit,\n"
      "        {use: all_zero, with: {collection_names: [gradients, weights]}}, "
      "stalled_training_rule, cpu_bottleneck]\n";
  // Every rule that looks at tensors or losses of deep learning.
  const std::string tensor_rules =
      "rules: ["
      "exploding_tensor, vanishing_gradient, weight_update_ratio, update_large, "
      "identical_parameters, "
      "weight_saturation, dead_relu, saturated_activation, constant_input, input_range, "
      "nlp_sequence_ratio, loss_not_decreasing, loss_spike, overfit, overtraining, "
      "adversarial_imbalance, mode_mismatch, gradient_clipping, confusion, class_imbalance, "
      "poor_weight_initialization, check_input_images, probabilities_into_loss, "
      "replica_divergence, "
      "{use: all_zero, with: {collection_names: [weights, gradients]}}, "
      "{use: unchanged_tensor, with: {collection_names: [weights]}}, "
      "{use: tensor_variance, with: {collection_names: [weights, gradients], max_threshold: "
      "1e9}}]\n";
  std::vector<Cost> r;
  std::vector<Cost> one;
  std::vector<Cost> eight;
  std::vector<Cost> tensors;
  for (int round = 0; round < kRounds;
       ++round) {  // in turn, so that a drifting machine hits all alike
    r.push_back(bare(bootstrap, topic, topics.partitions, total));
    one.push_back(engine(**transport, one_rule, total));
    eight.push_back(engine(**transport, all_rules, total));
    tensors.push_back(engine(**transport, tensor_rules, total));
  }
  const double base = median_rate(r);
  bench::figure("R: bare librdkafka, framed rows", base, "M rows/CPU-s");
  bench::judged("decode + state + 1 rule", median_rate(one), "M rows/CPU-s", 12, true);
  bench::judged("decode + state + 1 rule / R", median_rate(one) / base, "ratio", 0.5, true);
  bench::judged("decode + state + all 8 rules", median_rate(eight), "M rows/CPU-s", 6, true);
  bench::figure("decode + state + all 8 rules / R", median_rate(eight) / base, "ratio");
  bench::figure("decode + state + all 27 tensor rules", median_rate(tensors), "M rows/CPU-s");
  bench::judged("decode + state + all 27 tensor rules / R", median_rate(tensors) / base, "ratio",
                0.25, true);
  return 0;
}
