// Stops by Kubernetes: what is asked, and what an answer proves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/actions/platforms.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing_support;

const std::string kJobUrl = "https://k8s.example/apis/batch/v1/namespaces/ml/jobs/bert";
constexpr const char* kUid = "4f5a8e1c-0001";

std::string job(const std::string& uid, const std::string& spec, const std::string& status,
                const std::string& meta = "") {
  return R"({"kind":"Job","metadata":{"uid":")" + uid +
         R"(","name":"bert","creationTimestamp":"2026-01-02T03:00:00Z")" + meta + R"(},"spec":{)" +
         spec + R"(},"status":{)" + status + "}}";
}

struct KubernetesBench : PlatformBench {
  explicit KubernetesBench(const std::string& more = "")
      : PlatformBench("{kubernetes: {url: 'https://k8s.example', token: canary-token" + more +
                      "}}") {
    fence = core::ValueMap{{"platform", "k8s-job"}, {"namespace", "ml"}, {"name", "bert"},
                           {"uid", kUid},           {"pid", 7},          {"pid_start", 8}};
  }
};

TEST(KubernetesStop, SuspendsTheJobOnlyIfItStillHasTheUid) {
  KubernetesBench bench;
  ASSERT_EQ(bench.errors, "");
  bench.answer(200, job(kUid, "", R"("active":2)"));
  bench.answer(200, job(kUid, R"("suspend":true)", R"("active":2)"));
  const auto answer = bench.carry_out(PlatformRung::graceful);
  EXPECT_EQ(answer.seen, PlatformSeen::running) << answer.detail;
  EXPECT_TRUE(answer.asked);
  EXPECT_THAT(bench.asked(), ElementsAre("GET " + kJobUrl, "PATCH " + kJobUrl));
  const HttpRequest& patch = bench.http.requests[1];
  EXPECT_EQ(patch.body, R"([{"op":"test","path":"/metadata/uid","value":"4f5a8e1c-0001"},)"
                        R"({"op":"add","path":"/spec/suspend","value":true}])");
  EXPECT_THAT(patch.headers, ::testing::Contains(std::pair<std::string, std::string>(
                                 "content-type", "application/json-patch+json")));
  EXPECT_THAT(patch.headers, ::testing::Contains(std::pair<std::string, std::string>(
                                 "authorization", "Bearer canary-token")));
}

TEST(KubernetesStop, LooksWithoutAsking) {
  KubernetesBench bench;
  bench.answer(200, job(kUid, "", R"("active":2)"));
  const auto answer = bench.carry_out(PlatformRung::look);
  EXPECT_EQ(answer.seen, PlatformSeen::running);
  EXPECT_FALSE(answer.asked);
  EXPECT_EQ(bench.http.requests.size(), 1u);
}

// After a kill -9 nobody knows whether it was asked: the object does.
TEST(KubernetesStop, WhatIsSuspendedAlreadyIsNotAskedAgain) {
  KubernetesBench bench;
  bench.answer(200, job(kUid, R"("suspend":true)", R"("active":1)"));
  const auto answer = bench.carry_out(PlatformRung::graceful);
  EXPECT_EQ(answer.seen, PlatformSeen::running);
  EXPECT_TRUE(answer.asked);
  EXPECT_EQ(bench.http.requests.size(), 1u);
  EXPECT_THAT(answer.detail, HasSubstr("1 pod is left"));
}

TEST(KubernetesStop, AnotherObjectOfThatNameIsLeftAlone) {
  KubernetesBench bench;
  bench.answer(200, job("other", "", R"("active":2)"));
  const auto answer = bench.carry_out(PlatformRung::graceful);
  EXPECT_EQ(answer.seen, PlatformSeen::stale);
  EXPECT_FALSE(answer.asked);
  EXPECT_EQ(bench.http.requests.size(), 1u);
  EXPECT_THAT(answer.detail, HasSubstr("Job ml/bert is another object now"));
}

// Made anew between our reading and our patch: the server's own test fails, and nothing is changed.
TEST(KubernetesStop, AFailedTestIsReadAgain) {
  KubernetesBench bench;
  bench.answer(200, job(kUid, "", R"("active":2)"));
  bench.answer(
      422, R"({"kind":"Status","status":"Failure","message":"the server rejected our request"})");
  bench.answer(200, job("other", "", R"("active":2)"));
  EXPECT_EQ(bench.carry_out(PlatformRung::graceful).seen, PlatformSeen::stale);
}

TEST(KubernetesStop, AChangeThatTheServerDoesNotTakeIsNoStop) {
  KubernetesBench bench;
  bench.answer(200, job(kUid, "", R"("active":2)"));
  bench.answer(422, R"({"kind":"Status","message":"spec.suspend: field is immutable"})");
  bench.answer(200, job(kUid, "", R"("active":2)"));
  const auto answer = bench.carry_out(PlatformRung::graceful);
  EXPECT_EQ(answer.seen, PlatformSeen::denied);
  EXPECT_FALSE(answer.asked);
  EXPECT_THAT(answer.detail, HasSubstr("immutable"));
}

TEST(KubernetesStop, EachEndIsProof) {
  const auto seen = [](int status, const std::string& body) {
    KubernetesBench bench;
    bench.answer(status, body);
    return bench.carry_out(PlatformRung::look).seen;
  };
  const std::string suspended = R"("conditions":[{"type":"Suspended","status":"True"}])";
  EXPECT_EQ(seen(200, job(kUid, R"("suspend":true)", suspended)), PlatformSeen::ended);
  // Its pods still end: that is no proof.
  EXPECT_EQ(seen(200, job(kUid, R"("suspend":true)", suspended + R"(,"active":1)")),
            PlatformSeen::running);
  EXPECT_EQ(seen(200, job(kUid, R"("suspend":true)", suspended + R"(,"terminating":1)")),
            PlatformSeen::running);
  EXPECT_EQ(seen(200, job(kUid, "", R"("conditions":[{"type":"Failed","status":"True"}])")),
            PlatformSeen::ended);
  EXPECT_EQ(seen(200, job(kUid, "", R"("conditions":[{"type":"Failed","status":"False"}])")),
            PlatformSeen::running);
  EXPECT_EQ(seen(404, R"({"kind":"Status","reason":"NotFound","details":{"name":"bert"}})"),
            PlatformSeen::ended);
}

// A 404 of a proxy, or of a server without the kind, is no end.
TEST(KubernetesStop, ANotFoundOfSomethingElseProvesNothing) {
  for (const char* body :
       {"404 page not found", R"({"reason":"NotFound","details":{"name":"x"}})"}) {
    KubernetesBench bench;
    bench.answer(404, body);
    EXPECT_EQ(bench.carry_out(PlatformRung::look).seen, PlatformSeen::denied) << body;
  }
}

TEST(KubernetesStop, ForceDeletesWithThePreconditionOfTheUid) {
  KubernetesBench bench;
  bench.answer(200, job(kUid, R"("suspend":true)", R"("active":1)"));
  bench.answer(200, R"({"kind":"Job"})");
  const auto answer = bench.carry_out(PlatformRung::force);
  EXPECT_TRUE(answer.asked) << answer.detail;
  EXPECT_THAT(bench.asked(), ElementsAre("GET " + kJobUrl, "DELETE " + kJobUrl));
  EXPECT_EQ(bench.http.requests[1].body,
            R"({"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Foreground",)"
            R"("preconditions":{"uid":"4f5a8e1c-0001"}})");
}

TEST(KubernetesStop, AConflictOfTheDeletionIsReadAgain) {
  KubernetesBench bench;
  bench.answer(200, job(kUid, "", R"("active":1)"));
  bench.answer(409, R"({"kind":"Status","reason":"Conflict"})");
  bench.answer(200, job("other", "", R"("active":1)"));
  EXPECT_EQ(bench.carry_out(PlatformRung::force).seen, PlatformSeen::stale);
}

TEST(KubernetesStop, PauseSuspendsWhereStopsDelete) {
  KubernetesBench bench(", graceful: delete");
  bench.mode = "pause";
  bench.answer(200, job(kUid, "", R"("active":1)"));
  bench.answer(200, job(kUid, R"("suspend":true)", ""));
  bench.carry_out(PlatformRung::graceful);
  EXPECT_EQ(bench.http.requests[1].method, "PATCH");

  KubernetesBench stops(", graceful: delete");
  stops.answer(200, job(kUid, "", R"("active":1)"));
  stops.answer(200, "{}");
  stops.carry_out(PlatformRung::graceful);
  EXPECT_EQ(stops.http.requests[1].method, "DELETE");
}

// Kueue would start again what is suspended behind its back.
TEST(KubernetesStop, OfAQueueTheWorkloadIsEnded) {
  KubernetesBench bench;
  const std::string queued = R"(,"labels":{"kueue.x-k8s.io/queue-name":"gpus"})";
  bench.answer(200, job(kUid, R"("suspend":false)", R"("active":2)", queued));
  bench.answer(
      200, R"({"items":[{"metadata":{"name":"job-bert-1","uid":"w1","ownerReferences":[{"uid":")" +
               std::string(kUid) + R"("}]},"spec":{"active":true}}]})");
  bench.answer(200, "{}");
  const auto answer = bench.carry_out(PlatformRung::graceful);
  EXPECT_TRUE(answer.asked) << answer.detail;
  const std::string space =
      "https://k8s.example/apis/kueue.x-k8s.io/v1beta1/namespaces/ml/workloads";
  EXPECT_THAT(bench.asked(),
              ElementsAre("GET " + kJobUrl,
                          "GET " + space + "?labelSelector=kueue.x-k8s.io%2Fjob-uid%3D" + kUid,
                          "PATCH " + space + "/job-bert-1"));
  EXPECT_EQ(bench.http.requests[2].body, R"([{"op":"test","path":"/metadata/uid","value":"w1"},)"
                                         R"({"op":"add","path":"/spec/active","value":false}])");
}

TEST(KubernetesStop, AWorkloadOfAnotherObjectIsNotEnded) {
  KubernetesBench bench;
  bench.answer(200,
               job(kUid, "", R"("active":2)", R"(,"labels":{"kueue.x-k8s.io/queue-name":"g"})"));
  bench.answer(
      200,
      R"({"items":[{"metadata":{"name":"w","uid":"w1","ownerReferences":[{"uid":"other"}]}}]})");
  EXPECT_EQ(bench.carry_out(PlatformRung::graceful).seen, PlatformSeen::unreachable);
  EXPECT_EQ(bench.http.requests.size(), 2u);
}

TEST(KubernetesStop, KnowsTheOtherKinds) {
  struct Kind {
    const char* platform;
    const char* kind;
    const char* path;
    const char* change;
  };
  for (const Kind& one : {
           Kind{"jobset", "JobSet", "apis/jobset.x-k8s.io/v1alpha2/namespaces/ml/jobsets/bert",
                R"({"op":"add","path":"/spec/suspend","value":true})"},
           Kind{"pytorchjob", "PyTorchJob", "apis/kubeflow.org/v1/namespaces/ml/pytorchjobs/bert",
                R"({"op":"add","path":"/spec/runPolicy","value":{"suspend":true}})"},
           Kind{"trainjob", "TrainJob",
                "apis/trainer.kubeflow.org/v1alpha1/namespaces/ml/trainjobs/bert",
                R"({"op":"add","path":"/spec/suspend","value":true})"},
           Kind{"rayjob", "RayJob", "apis/ray.io/v1/namespaces/ml/rayjobs/bert",
                R"({"op":"add","path":"/spec/suspend","value":true})"},
       }) {
    KubernetesBench bench;
    bench.fence = core::ValueMap{
        {"platform", one.platform}, {"namespace", "ml"}, {"name", "bert"}, {"uid", kUid}};
    bench.answer(200, R"({"kind":")" + std::string(one.kind) + R"(","metadata":{"uid":")" + kUid +
                          R"("},"spec":{}})");
    bench.answer(200, "{}");
    EXPECT_TRUE(bench.carry_out(PlatformRung::graceful).asked) << one.kind;
    EXPECT_EQ(bench.asked().at(0), "GET https://k8s.example/" + std::string(one.path));
    EXPECT_THAT(bench.http.requests.at(1).body, HasSubstr(one.change)) << one.kind;
  }
}

// A pod that was not told the uid: its object was there before the run's client opened.
TEST(KubernetesStop, WithoutAUidTheTimeTells) {
  const auto seen = [](const char* opened) {
    KubernetesBench bench;
    bench.fence =
        core::ValueMap{{"platform", "k8s-job"},
                       {"namespace", "ml"},
                       {"name", "bert"},
                       {"opened", core::nanoseconds(*core::parse_rfc3339(opened)) / 1'000'000'000}};
    bench.answer(200, job("any", "", R"("active":2)"));
    bench.answer(200, "{}");
    return bench.carry_out(PlatformRung::graceful).seen;
  };
  EXPECT_EQ(seen("2026-01-02T03:00:05Z"), PlatformSeen::running);
  EXPECT_EQ(seen("2026-01-02T02:59:00Z"), PlatformSeen::stale);
}

TEST(KubernetesStop, ReachesOnlyWhatIsAFence) {
  KubernetesBench bench;
  const auto reaches = [&](core::ValueMap fence) { return bench.platform->reaches(fence); };
  EXPECT_TRUE(bench.platform->reaches(bench.fence));
  EXPECT_FALSE(reaches({{"platform", "k8s-job"}, {"namespace", "ml"}, {"name", "bert"}}));
  EXPECT_FALSE(
      reaches({{"platform", "slurm"}, {"namespace", "ml"}, {"name", "bert"}, {"uid", "u"}}));
  for (const char* name : {"../secrets/x", "a/b", "", "A", "-a", "a-", "a..b", "a?x=1"}) {
    EXPECT_FALSE(
        reaches({{"platform", "k8s-job"}, {"namespace", "ml"}, {"name", name}, {"uid", "u"}}))
        << name;
    EXPECT_FALSE(
        reaches({{"platform", "k8s-job"}, {"namespace", name}, {"name", "a"}, {"uid", "u"}}))
        << name;
  }
}

TEST(KubernetesStop, SaysWhyItWasRefusedAndNeverTheToken) {
  KubernetesBench bench;
  bench.answer(403, R"({"kind":"Status","message":"jobs is forbidden, token canary-token"})");
  const auto refused = bench.carry_out(PlatformRung::graceful);
  EXPECT_EQ(refused.seen, PlatformSeen::denied);
  EXPECT_THAT(refused.detail, HasSubstr("Kubernetes answered 403"));
  EXPECT_THAT(refused.detail, ::testing::Not(HasSubstr("canary")));
  bench.answer(503, "later");
  EXPECT_EQ(bench.carry_out(PlatformRung::graceful).seen, PlatformSeen::unreachable);
  bench.http.answers.push_back({HttpFailure::unreachable, "canary-token refused", {}});
  const auto away = bench.carry_out(PlatformRung::graceful);
  EXPECT_EQ(away.seen, PlatformSeen::unreachable);
  EXPECT_THAT(away.detail, ::testing::Not(HasSubstr("canary")));
  EXPECT_EQ(bench.http.requests.size(), 3u);
}

}  // namespace
}  // namespace tocsin::actions
