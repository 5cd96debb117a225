#include "app/cli/run_command.h"

#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "app/cli/run_judge.h"
#include "app/process/exit_code.h"
#include "collectors/collectors.h"
#include "collectors/hook/hook.h"
#include "core/system_clock.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

using std::chrono::seconds;

constexpr int kCannotExecute = 126;
constexpr int kNoSuchCommand = 127;
constexpr seconds kDeliver{5};

/// The file that hooks append to; gone with this object.
class ReportFile {
 public:
  ReportFile() {
    std::error_code ignored;
    std::filesystem::path folder = std::filesystem::temp_directory_path(ignored);
    if (ignored) folder = "/tmp";
    path_ = (folder / "tocsin-run-XXXXXX").string();
    const int file = mkstemp(path_.data());
    if (file < 0) {
      path_.clear();
    } else {
      close(file);
    }
  }
  ~ReportFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] LaunchReport read() const {
    std::ifstream in(path_);
    return read_launch_report({std::istreambuf_iterator<char>(in), {}});
  }

 private:
  std::string path_;
};

// What every Python below runs first. It loads the package's own file by its path, so that an
// interpreter that trains nothing pays for nothing, and then the start-up module that it hides.
constexpr const char* kStartUp = R"py(# Put here by `tocsin run` for as long as its command runs.
import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _load(spec, name):
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _attach():
    found = importlib.util.find_spec("tocsin")
    if found is None or not found.submodule_search_locations:
        if os.environ.get("TOCSIN_ATTACH") == str(os.getpid()):
            print("tocsin: nothing is attached: " + sys.executable + " has no package tocsin "
                  "(pip install tocsin)", file=sys.stderr)
        return
    path = os.path.join(list(found.submodule_search_locations)[0], "_attach.py")
    _load(importlib.util.spec_from_file_location("tocsin_attach", path), "tocsin_attach").begin()


def _next():
    others = [place for place in sys.path if os.path.abspath(place or os.curdir) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        _load(spec, "sitecustomize")


try:
    _attach()
except Exception as error:
    print("tocsin: cannot attach: " + repr(error), file=sys.stderr)
_next()
)py";

/// A folder with that module, in front of PYTHONPATH; gone with this object.
class StartUpFolder {
 public:
  explicit StartUpFolder(bool wanted) {
    if (!wanted) return;
    std::error_code ignored;
    std::filesystem::path folder = std::filesystem::temp_directory_path(ignored);
    if (ignored) folder = "/tmp";
    path_ = (folder / "tocsin-attach-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) {
      path_.clear();
      return;
    }
    std::ofstream(path_ + "/sitecustomize.py") << kStartUp;
    const char* before = std::getenv("PYTHONPATH");
    const std::string all = before != nullptr && *before != '\0' ? path_ + ":" + before : path_;
    setenv("PYTHONPATH", all.c_str(), 1);
  }
  ~StartUpFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  StartUpFolder(const StartUpFolder&) = delete;
  StartUpFolder& operator=(const StartUpFolder&) = delete;
  [[nodiscard]] bool there() const noexcept { return !path_.empty(); }

 private:
  std::string path_;
};

bool quiet() {
  const char* given = std::getenv("TOCSIN_QUIET");
  return given != nullptr && *given != '\0' && std::strcmp(given, "0") != 0;
}

bool switched_off() {
  for (const char* name : {"TOCSIN_DISABLED", "TOCSIN_DISABLE"}) {
    const char* given = std::getenv(name);
    if (given != nullptr && *given != '\0' && std::strcmp(given, "0") != 0) return true;
  }
  return false;
}

std::string host_name() {
  utsname names{};
  return uname(&names) == 0 ? names.nodename : "localhost";
}

void tell(const std::string& words) { std::fprintf(stderr, "tocsin: %s\n", words.c_str()); }

/// In the new process; does not return.
[[noreturn]] void execute(const std::vector<std::string>& command, const sigset_t& mask) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& one : command) arguments.push_back(const_cast<char*>(one.c_str()));
  arguments.push_back(nullptr);
  setenv("TOCSIN_ATTACH", std::to_string(getpid()).c_str(), 1);  // the process that speaks for us
  std::signal(SIGPIPE, SIG_DFL);  // ours is ignored, and that would be inherited
  std::signal(SIGXFSZ, SIG_DFL);  // the same
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvp(arguments[0], arguments.data());
  const int why = errno;
  tell(command[0] + ": " + std::strerror(why));
  _exit(why == ENOENT ? kNoSuchCommand : kCannotExecute);
}

/// Waits for the child and passes on what is sent to us meanwhile. A terminal sends its signals to
/// the whole group, so the child has those already.
int wait_for(pid_t child, const sigset_t& waited) {
  while (true) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return status;
    siginfo_t info{};
    const int number = sigwaitinfo(&waited, &info);
    if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL) kill(child, number);
  }
}

/// `died` frames of the workers that ended without a word, under an identity of their own: beside
/// the node's agent, which may say the same.
class DeathNotices {
 public:
  DeathNotices(std::int64_t child, int wait_status, core::WallTime now)
      : child_(child), status_(wait_status), now_(now), node_(host_name() + "/run") {}

  /// Empty when everybody is alive or has spoken.
  std::vector<core::OutRecord> of(const LaunchReport& report) {
    std::vector<core::OutRecord> out;
    collectors::ProcessWatch watch;
    for (const ReportedWorker& worker : report.workers) {
      if (worker.told) continue;
      const collectors::Death death{
          {worker.run, worker.worker, worker.incarnation}, worker.pid, std::nullopt, std::nullopt};
      const collectors::WatchedProcess process{worker.pid, worker.pid_start, worker.boot_id,
                                               collectors::own_pid_namespace()};
      // One that a launcher left behind is alive and speaks for itself.
      if (worker.pid != child_ &&
          watch.watch(death.worker, process) == collectors::Watching::alive) {
        continue;
      }
      add(worker, death, out);
    }
    return out;
  }

 private:
  void add(const ReportedWorker& worker, collectors::Death death,
           std::vector<core::OutRecord>& out) {
    if (worker.pid == child_) {  // of others we are not the parent: nobody tells us
      if (WIFSIGNALED(status_)) {
        death.signal = WTERMSIG(status_);
      } else {
        death.exit_code = WEXITSTATUS(status_);
      }
    }
    core::FrameHeader header;
    header.mode = core::Mode::global;
    header.run = worker.run;
    header.attempt = worker.attempt;
    header.rank = core::kNodeAgentRank;
    header.worker = core::name_hash(node_);
    header.incarnation = static_cast<std::uint64_t>(core::nanoseconds(now_));
    header.time = core::nanoseconds(now_);
    std::uint64_t& sequence = sequences_[worker.run];
    if (sequence == 0) {
      header.sequence = ++sequence;
      core::DictionaryEntry name;
      name.hash = header.worker;
      name.type = core::DictionaryType::node;
      name.name = node_;
      put(writer_.dictionary(header, std::span(&name, 1)).finish(), worker.run, out);
    }
    header.sequence = ++sequence;
    const std::string body = ingest::encode_lifecycle(collectors::to_lifecycle(death));
    put(writer_.lifecycle(header, body).finish(), worker.run, out);
  }

  static void put(const core::Result<std::span<const std::byte>>& frame, const core::RunUid& run,
                  std::vector<core::OutRecord>& out) {
    if (!frame) return;
    core::OutRecord record;
    record.topic = core::topic::kTelemetry;
    record.key = core::route_key(run);
    record.value.emplace(reinterpret_cast<const char*>(frame->data()), frame->size());
    out.push_back(std::move(record));
  }

  std::int64_t child_;
  int status_;
  core::WallTime now_;
  std::string node_;
  ingest::FrameWriter writer_;
  std::map<core::RunUid, std::uint64_t> sequences_;
};

core::Status publish(const hook::Settings& settings, const std::vector<core::OutRecord>& records) {
  core::NullLog log;
  core::NullTelemetry telemetry;
  auto transport = ingest::Transport::open(settings.transport, settings.topics, log, telemetry);
  if (!transport) return transport.error();
  ingest::PublisherOptions options;
  options.writer = "run-" + std::to_string(getpid());
  auto publisher = (*transport)->publisher(options);
  if (!publisher) return publisher.error();
  for (const core::OutRecord& record : records) {
    if (auto published = (*publisher)->publish(record); !published) return published;
  }
  return (*publisher)->flush(kDeliver);
}

// Null where somebody else judges, or nobody can: of a cluster the hooks find out whether an engine reads it.
std::unique_ptr<RunJudge> judge_of(const hook::Settings& settings, const std::string& config_file,
                                   const ReportFile& report) {
  const bool here = settings.transport.kafka.is_null() && !settings.capture.dry_run;
  if (!here || hook::engine_reads(settings.transport.journal, settings.topics.prefix))
    return nullptr;
  const auto say = [](const std::string& words) {
    if (!quiet()) tell(words);
  };
  std::string why;
  auto judge = RunJudge::create(
      settings, config_file, [&report] { return report.read(); }, say, why);
  if (!why.empty() && !quiet()) {
    tell(judge == nullptr
             ? "no rules judge this run: " + why
             : "the default rules judge this run, because the configured ones cannot: " + why);
  }
  return judge;
}

void tell_verdicts(const std::vector<RunVerdict>& verdicts) {
  for (const RunVerdict& one : verdicts) {
    if (!quiet()) tell(verdict_sentence(one));
  }
}

// What the command and its processes read.
void set_environment(const RunOptions& options, const ReportFile& report) {
  // One id for all processes of this launch, unless a launcher of launchers has given one.
  setenv("TOCSIN_LAUNCH", core::to_text(core::run_uid_v4()).c_str(), 0);
  setenv(hook::kReportVariable, report.path().c_str(), 1);
  if (!options.config_file.empty()) setenv("TOCSIN_CONFIG", options.config_file.c_str(), 1);
  if (!options.out.empty()) {
    unsetenv("TOCSIN_BROKERS");  // would go before it
    setenv("TOCSIN_OUT", options.out.c_str(), 1);
  }
}

}  // namespace

int run_command(const RunOptions& options) {
  if (options.command.empty()) return tell("run: give the command after --"), kUsage;
  const auto settings =
      hook::load_settings({options.out, options.config_file, "", ""}, hook::this_process());
  if (!settings) return tell(settings.error().message), kConfiguration;
  for (const std::string& words : settings->warnings) tell(words + " (the default is used)");
  const ReportFile report;
  if (report.path().empty()) return tell("run: cannot create a temporary file"), kFailed;

  set_environment(options, report);
  const bool off = switched_off();
  const StartUpFolder start_up(options.attach && !off);
  const char* named = std::getenv("TOCSIN_CONFIG");
  const std::unique_ptr<RunJudge> judge =
      off ? nullptr : judge_of(*settings, named == nullptr ? "" : named, report);
  if (judge != nullptr) setenv(hook::kJudgedVariable, "tocsin run", 1);
  sigset_t waited;
  sigset_t before;
  sigemptyset(&waited);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    sigaddset(&waited, number);
  }
  sigprocmask(SIG_BLOCK, &waited, &before);
  const pid_t child = fork();
  if (child < 0) return tell(std::string("run: ") + std::strerror(errno)), kTemporary;
  if (child == 0) execute(options.command, before);
  if (judge != nullptr) judge->start();
  const int status = wait_for(child, waited);

  const LaunchReport facts = report.read();
  if (facts.workers.empty() && start_up.there() && !quiet()) {
    tell(
        "nothing was watched: the command did not call tocsin.watch(), and no supported framework "
        "trained in it");
  }
  const core::SystemClock clock;
  const auto notices = DeathNotices(child, status, clock.now()).of(facts);
  if (!notices.empty()) {
    if (const auto told = publish(*settings, notices); !told) {
      tell("could not record how the command ended in " + settings->out + ": " +
           told.error().message);
    }
  }
  if (judge != nullptr) tell_verdicts(judge->finish());
  return launch_exit_code(status, child, facts);
}

}  // namespace tocsin::app
