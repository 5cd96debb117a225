// Reads       GET of the object: 404 (of this object) is its end, another uid is `stale`.
// Suspends    PATCH application/json-patch+json with `test` on /metadata/uid: 422 where it does not
//             hold, and nothing is changed. Where Kueue owns `suspend`: spec.active of its Workload.
// Deletes     DELETE with preconditions.uid and propagationPolicy Foreground: 409 for another uid.
// Proof       the condition Suspended with no pod left, a terminal condition, or the object is gone.
// Needs       get and patch (delete for `force`) on the kinds that are stopped: deploy/kubernetes.
// Source      Kubernetes API reference (Job v1, DeleteOptions), RFC 6902; Kueue, JobSet, Kubeflow
//             Training Operator v1 and Trainer v2, KubeRay API references.
#include "actions/platform/kubernetes.h"

#include <chrono>

#include "actions/platform/kubernetes_object.h"
#include "actions/platform/platform_fence.h"
#include "actions/transport/redact.h"

namespace tocsin::actions {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;
using std::chrono::milliseconds;

constexpr const char* kAccount = "/var/run/secrets/kubernetes.io/serviceaccount/";
constexpr const char* kWho = "Kubernetes";

PlatformAnswer answer(PlatformSeen seen, std::string detail, bool asked = false) {
  return {seen, std::move(detail), asked};
}

class Kubernetes final : public PlatformStop {
 public:
  Kubernetes(const KubernetesConfig& cfg, HttpClient* http) : cfg_(cfg), http_(cfg.place, http) {}

  [[nodiscard]] std::string_view name() const override { return "kubernetes"; }
  [[nodiscard]] bool reaches(const Value& fence) const override {
    return kubernetes_name(fence).has_value();
  }

  PlatformAnswer carry_out(const PlatformTarget& target, PlatformRung rung,
                           milliseconds budget) override {
    auto name = kubernetes_name(target.fence);
    if (!name) return answer(PlatformSeen::denied, "the run does not say which object it is in");
    const auto object = read(*name, target.fence, budget);
    if (object.over) return *object.over;
    const KubernetesState& now = object.state;
    // What is being deleted, or asked to suspend, was asked before: by us, or by somebody else.
    const bool remove =
        rung == PlatformRung::force || (cfg_.graceful == "delete" && target.mode != "pause");
    const bool asked = now.deleting || (now.suspend && !remove);
    if (rung == PlatformRung::look || asked) {
      return answer(PlatformSeen::running, describe(*name, now), now.deleting || now.suspend);
    }
    name->uid = now.uid;
    if (remove) return erase(*name, target.fence, budget);
    if (!now.queue.empty()) return deactivate(*name, target.fence, budget);
    return suspend(*name, now.bare, target.fence, budget);
  }

 private:
  struct Object {
    KubernetesState state;
    std::optional<PlatformAnswer> over;  // nothing is to be asked
  };

  static std::string describe(const KubernetesName& name, const KubernetesState& now) {
    std::string out = text_of(name);
    out += now.deleting ? " is being deleted" : now.suspend ? " is suspended" : " runs";
    return out + (now.active.empty() ? "" : ", " + now.active);
  }

  Object read(const KubernetesName& name, const Value& fence, milliseconds budget) {
    const PlatformReply reply =
        http_.send({"GET", path_of(name), {{"accept", "application/json"}}, "", {}}, budget);
    Object out;
    if (reply.status == 404 && is_gone(reply, name)) {
      out.over = answer(PlatformSeen::ended, text_of(name) + " is gone", true);
      return out;
    }
    if (reply.status != 200 || core::text_at(reply.json, "kind") != name.kind->kind) {
      out.over = not_answered(reply, kWho, "the question for " + text_of(name));
      if (reply.status == 404) out.over->seen = PlatformSeen::denied;  // no such kind there
      return out;
    }
    out.state = kubernetes_state(*name.kind, reply.json);
    out.over = compared(name, fence, out.state);
    return out;
  }

  // The answer of an API server about this object, and not that of a proxy or of a server that does
  // not have the kind.
  static bool is_gone(const PlatformReply& reply, const KubernetesName& name) {
    return core::text_at(reply.json, "reason") == "NotFound" &&
           json_text(reply.json, "details.name") == name.name;
  }

  static std::optional<PlatformAnswer> compared(const KubernetesName& name, const Value& fence,
                                                const KubernetesState& now) {
    if (!name.uid.empty() && now.uid != name.uid) {
      return answer(PlatformSeen::stale, text_of(name) + " is another object now: its uid is " +
                                             printable(now.uid, 64) + ", the run's was " +
                                             name.uid);
    }
    if (name.uid.empty()) {
      const auto made = seconds_of(now.made);
      if (now.uid.empty() || !made || !made_before_opening(*made, fence, false)) {
        return answer(PlatformSeen::stale, text_of(name) + " is another object now: it was made " +
                                               printable(now.made, 64) +
                                               ", after the run had begun");
      }
    }
    if (!now.finished.empty()) {
      return answer(PlatformSeen::ended, text_of(name) + " is " + now.finished, true);
    }
    if (now.suspended) {
      return answer(PlatformSeen::ended, text_of(name) + " is suspended, no pod is left", true);
    }
    return std::nullopt;
  }

  // RFC 6902 adds a member only to what is there.
  PlatformAnswer suspend(const KubernetesName& name, bool bare, const Value& fence,
                         milliseconds budget) {
    std::string_view pointer = name.kind->suspend;
    Value value(true);
    if (bare) {
      value = ValueMap{{std::string(pointer.substr(pointer.rfind('/') + 1)), true}};
      pointer = pointer.substr(0, pointer.rfind('/'));
    }
    return patch(path_of(name), name.uid, pointer, std::move(value), "suspend", name, fence,
                 budget);
  }

  PlatformAnswer patch(const std::string& path, const std::string& uid, std::string_view pointer,
                       Value value, const char* verb, const KubernetesName& name,
                       const Value& fence, milliseconds budget) {
    const PlatformReply reply = http_.send(
        {"PATCH",
         path,
         {{"content-type", "application/json-patch+json"}, {"accept", "application/json"}},
         fenced_patch(uid, pointer, std::move(value)),
         {}},
        budget);
    if (reply.status == 200) {
      return answer(PlatformSeen::running,
                    std::string(kWho) + " was asked to " + verb + " " + text_of(name), true);
    }
    // The test did not hold, or the server does not take the change: what stands there says which.
    if (reply.status == 422 || reply.status == 404) {
      const auto again = read(name, fence, budget);
      if (again.over) return *again.over;
      PlatformAnswer refused =
          not_answered(reply, kWho, std::string("the request to ") + verb + " " + text_of(name));
      refused.seen = PlatformSeen::denied;
      return refused;
    }
    return not_answered(reply, kWho, std::string("the request to ") + verb + " " + text_of(name));
  }

  PlatformAnswer erase(const KubernetesName& name, const Value& fence, milliseconds budget) {
    const std::string body =
        core::to_json(ValueMap{{"kind", "DeleteOptions"},
                               {"apiVersion", "v1"},
                               {"propagationPolicy", "Foreground"},
                               {"preconditions", ValueMap{{"uid", name.uid}}}});
    const PlatformReply reply =
        http_.send({"DELETE",
                    path_of(name),
                    {{"content-type", "application/json"}, {"accept", "application/json"}},
                    body,
                    {}},
                   budget);
    if (reply.status == 200 || reply.status == 202) {
      return answer(PlatformSeen::running,
                    std::string(kWho) + " was asked to delete " + text_of(name), true);
    }
    if (reply.status == 409 || reply.status == 404) {
      const auto again = read(name, fence, budget);
      if (again.over) return *again.over;
    }
    return not_answered(reply, kWho, "the request to delete " + text_of(name));
  }

  // Kueue would undo `suspend`: it is its own means. The Workload that the object has there is ended.
  PlatformAnswer deactivate(const KubernetesName& name, const Value& fence, milliseconds budget) {
    const std::string space =
        "/apis/kueue.x-k8s.io/" + cfg_.kueue + "/namespaces/" + name.space + "/workloads";
    const PlatformReply reply = http_.send(
        {"GET",
         space + "?labelSelector=" + percent_encode("kueue.x-k8s.io/job-uid=" + name.uid),
         {{"accept", "application/json"}},
         "",
         {}},
        budget);
    const auto* items = core::as<ValueList>(core::find(reply.json, "items"));
    if (reply.status != 200 || items == nullptr) {
      return not_answered(reply, kWho, "the question for Kueue's Workload of " + text_of(name));
    }
    const Value* mine = nullptr;
    for (const Value& one : *items) {
      if (!owned_by(one, name.uid)) continue;
      if (mine != nullptr) {
        return answer(PlatformSeen::denied,
                      "Kueue has several Workloads of " + text_of(name) + ": none was ended");
      }
      mine = &one;
    }
    if (mine == nullptr) {
      return answer(PlatformSeen::unreachable, "Kueue has no Workload of " + text_of(name));
    }
    const std::string workload = json_text(*mine, "metadata.name");
    const std::string uid = json_text(*mine, "metadata.uid");
    if (!is_dns_name(workload) || uid.empty()) {
      return answer(PlatformSeen::denied, "Kueue's Workload of " + text_of(name) + " has no name");
    }
    const auto* active = core::as<bool>(json_at(*mine, "spec.active"));
    if (active != nullptr && !*active) {
      return answer(PlatformSeen::running, "Kueue's Workload " + workload + " is not active", true);
    }
    return patch(space + "/" + workload, uid, "/spec/active", false,
                 "deactivate Kueue's Workload of", name, fence, budget);
  }

  static bool owned_by(const Value& workload, const std::string& uid) {
    const auto* owners = core::as<ValueList>(json_at(workload, "metadata.ownerReferences"));
    if (owners == nullptr) return false;
    return std::any_of(owners->begin(), owners->end(),
                       [&](const Value& one) { return core::text_at(one, "uid") == uid; });
  }

  KubernetesConfig cfg_;
  PlatformHttp http_;
};

}  // namespace

void read(config::Reader& in, KubernetesConfig& cfg) {
  cfg.place.url = "https://kubernetes.default.svc";
  if (!in.describing()) {
    cfg.place.token = config::Secret::from_file(std::string(kAccount) + "token");
  }
  if (!in.has("tls") && !in.has("url")) cfg.place.tls.ca_file = std::string(kAccount) + "ca.crt";
  read_place(in, cfg.place, PlaceKey::optional, PlaceKey::optional);
  in.optional("graceful", cfg.graceful, config::one_of({"suspend", "delete"}),
              "how a job is ended; `pause` always suspends, `allow_force` deletes");
  in.optional("kueue", cfg.kueue, config::one_of({"v1beta1", "v1beta2"}),
              "version of kueue.x-k8s.io, where queues own jobs");
}

std::unique_ptr<PlatformStop> make_kubernetes(const KubernetesConfig& cfg, HttpClient* http) {
  return std::make_unique<Kubernetes>(cfg, http);
}

}  // namespace tocsin::actions
