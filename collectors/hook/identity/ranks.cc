#include "collectors/hook/identity/ranks.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "collectors/hook/identity/bounded_json.h"

namespace tocsin::hook {
namespace {

using Json = nlohmann::json;

/// Variables of one launcher; null: it has none for that.
struct Row {
  const char* rank;
  const char* world;
  const char* local_world;
  const char* only_with = nullptr;  // the rank counts only where this is set, too
};

// Inner launchers before outer ones: mpirun in a step of Slurm's is asked first. Slurm sets
// SLURM_PROCID in batch scripts too; only inside a step does it count ranks.
constexpr Row kRows[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"},              // torchrun, DeepSpeed, Accelerate
    {"HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_SIZE"},  // horovodrun with Gloo
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},  // Open MPI: Horovod, SageMaker's data parallel library
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE"},  // MVAPICH2
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},                               // MPICH, Intel MPI
    {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_SIZE"},  // jsrun
    {"PALS_RANKID", nullptr, nullptr},                                         // Cray
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", nullptr},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_TASKS_PER_NODE", "SLURM_STEP_NUM_TASKS"},
    {"JAX_PROCESS_ID", "JAX_NUM_PROCESSES", nullptr},
};

std::optional<std::int64_t> first_of(const Variables& env, const char* Row::*which) {
  for (const Row& row : kRows) {
    if (row.*which == nullptr) continue;
    if (which == &Row::rank && row.only_with != nullptr && !env.integer({row.only_with})) continue;
    if (const auto found = env.integer({row.*which})) return found;
  }
  return std::nullopt;
}

bool is_here(std::string_view address) {
  const std::string_view host = address.substr(0, address.rfind(':'));
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]" || address == "::1";
}

// What a cluster of TensorFlow comes to, seen by tasks of one type.
struct ClusterTasks {
  std::int64_t before = 0;  // those that are counted before the type
  std::int64_t trains = 0;
  bool found = false;  // the type is one that is known
  bool here = true;    // all are on this host
};

ClusterTasks tasks_of(const Json& cluster, const std::string& type) {
  ClusterTasks out;
  for (const char* role : {"chief", "master", "worker", "ps", "evaluator"}) {
    const Json addresses = cluster.value(role, Json::array());
    const auto count = static_cast<std::int64_t>(addresses.is_array() ? addresses.size() : 0);
    const std::string_view name(role);
    if (name == type) out.found = true;
    if (!out.found) out.before += count;
    if (name != "ps" && name != "evaluator") out.trains += count;
    for (const Json& one : addresses)
      out.here = out.here && one.is_string() && is_here(one.get<std::string>());
  }
  return out;
}

// TensorFlow: {"cluster": {"chief": [addresses], "worker": […], "ps": […]}, "task": {"type", "index"}}.
// Those that train are counted chief first; parameter servers and the evaluator behind them.
bool from_tf_config(const Variables& env, Ranks& out) {
  const std::string text = env.text({"TF_CONFIG"});
  if (text.empty()) return false;
  const Json given = parse_given(text);
  if (!given.is_object() || !given.contains("cluster") || !given["cluster"].is_object())
    return false;
  const Json task = given.value("task", Json::object());
  if (!task.is_object() || !task.value("type", Json()).is_string()) return false;
  const std::string type = task["type"].get<std::string>();
  const Json& cluster = given["cluster"];
  out.index =
      task.value("index", Json()).is_number_integer() ? task["index"].get<std::int64_t>() : 0;
  const ClusterTasks tasks = tasks_of(cluster, type);
  if (!tasks.found || tasks.trains == 0) return false;
  out.rank = tasks.before + out.index;
  out.world = tasks.trains;
  out.one_host = tasks.here;
  if (type == "ps" || type == "evaluator") out.role = type;
  out.group = "tf_config:" + cluster.dump();
  return true;
}

// ps-lite and those that count like it (MXNet's kvstore, BytePS): workers, servers, a scheduler.
bool from_dmlc(const Variables& env, Ranks& out) {
  const std::string role = env.text({"DMLC_ROLE"});
  const auto workers = env.integer({"DMLC_NUM_WORKER"});
  if (role.empty() || !workers) return false;
  const std::int64_t local =
      std::max<std::int64_t>(env.integer({"BYTEPS_LOCAL_SIZE"}).value_or(1), 1);
  out.world = *workers * local;
  out.index =
      env.integer({"DMLC_WORKER_ID", "DMLC_SERVER_ID", "DMLC_RANK", "DMLC_TASK_ID"}).value_or(0);
  out.rank = out.index * local + env.integer({"BYTEPS_LOCAL_RANK"}).value_or(0);
  if (role != "worker") {
    out.role = role;
    const std::int64_t servers = env.integer({"DMLC_NUM_SERVER"}).value_or(0);
    out.rank = *out.world + (role == "server" ? out.index : servers);
  }
  const std::string root = env.text({"DMLC_PS_ROOT_URI"});
  out.one_host = is_here(root);
  out.group = "dmlc:" + root + ":" + env.text({"DMLC_PS_ROOT_PORT"});
  return true;
}

}  // namespace

Ranks ranks_of(const Variables& env) {
  Ranks out;
  // A script under a launcher may set TF_CONFIG by itself; the launcher knows better.
  const bool launched = first_of(env, &Row::rank).has_value();
  if (!launched && (from_tf_config(env, out) || from_dmlc(env, out))) return out;
  out.rank = first_of(env, &Row::rank);
  out.world = first_of(env, &Row::world);
  if (const auto local = first_of(env, &Row::local_world)) {
    out.one_host = *local == out.world.value_or(1);
  } else if (const std::string master = env.text({"MASTER_ADDR"}); !master.empty()) {
    out.one_host = is_here(master);
  }
  // horovodrun starts every rank through a process of its own.
  if (env.integer({"HOROVOD_RANK"}) && !env.integer({"RANK"})) {
    out.group = "horovod:" + env.text({"HOROVOD_GLOO_RENDEZVOUS_ADDR"}) + ":" +
                env.text({"HOROVOD_GLOO_RENDEZVOUS_PORT"});
  }
  return out;
}

}  // namespace tocsin::hook
