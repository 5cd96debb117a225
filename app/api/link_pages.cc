#include "app/api/link_pages.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "actions/actions.h"
#include "app/api/answer_desk.h"
#include "app/api/link_page_text.h"
#include "app/serve/url_query.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using actions::AnswerTarget;
using Purpose = AnswerTarget::Purpose;
using State = AnswerView::State;

constexpr std::size_t kLongestNameGiven = 80;
constexpr std::size_t kMostOfALinkForm = 4096;
// The form goes to the page's own address; nothing else is loaded but the style.
constexpr const char* kLinkPolicy =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'";

HttpAnswer page_of(int status, LinkPage page) {
  HttpAnswer out{status, link_page_html(page)};
  out.headers = {{"Content-Security-Policy", kLinkPolicy},
                 {"Cache-Control", "no-store"},
                 {"Referrer-Policy", "no-referrer"},
                 {"X-Robots-Tag", "noindex"},
                 {"X-Content-Type-Options", "nosniff"}};
  return out;
}

class LinkPages {
 public:
  LinkPages(const LinkConfig& config, ApiDesk& desk, core::Telemetry& telemetry)
      : seal_(config),
        desk_(desk),
        refused_(telemetry.counter("tocsin_router_signature_failures_total",
                                   "webhooks that were refused because their signature, or token, "
                                   "is wrong",
                                   {{"hook", "act"}})) {}

  // A program that follows links of mails asks this, and changes nothing.
  [[nodiscard]] HttpAnswer show(const HttpRequest& request) {
    const auto target = opened(request);
    if (!target) return not_ours();
    const auto view = look_at_answer(desk_, *target, by());
    if (!view) return cannot(view.error());
    if (view->state != State::ready) return page_of(over_status(*view), said(*view));
    return page_of(200, question(*target, *view));
  }

  [[nodiscard]] HttpAnswer act(const HttpRequest& request) {
    const auto target = opened(request);
    if (!target) return not_ours();
    if (request.body.size() > kMostOfALinkForm) {
      return page_of(413, {"Nothing was done", {"The form is too long."}, {}, {}});
    }
    const Principal who{name_of(request), ApiRole::operate, KnownBy::signature, {}};
    const UrlQuery no_query;
    const auto answered = answer_message(desk_, *target, by(), ApiCall{request, who, no_query});
    if (!answered) return cannot(answered.error());
    if (answered->done) return page_of(200, {"Done", {answered->words}, {}, {}});
    return page_of(answered->over ? 410 : 200, {"Nothing to do", {answered->words}, {}, {}});
  }

 private:
  static AnswerBy by() { return {"by a link in a message", "link", true}; }

  static std::string name_of(const HttpRequest& request) {
    std::string given;
    if (const auto form = UrlQuery::parse(request.body)) {
      given = core::visible(form->value("name").value_or(""), kLongestNameGiven);
    }
    return given.empty() ? "somebody (by link)" : given + " (by link)";
  }

  /// nullopt: we have not signed it, or for another purpose than a link has.
  std::optional<AnswerTarget> opened(const HttpRequest& request) {
    const std::string& link = request.in_path.find("link")->second;
    const std::size_t end = link.rfind('-');
    if (end != std::string::npos) {
      const std::string text = link.substr(0, end);
      const auto target = AnswerTarget::parse(text);
      const bool for_links =
          target && target->until &&
          (target->purpose == Purpose::acknowledge || target->purpose == Purpose::silence);
      if (for_links && seal_.is_ours(text, std::string_view(link).substr(end + 1))) return target;
    }
    refused_.add();
    desk_.log.warn("link_refused", {{"client", std::string(request.client)}});
    return std::nullopt;
  }

  static HttpAnswer not_ours() {
    return page_of(403,
                   {"This link is not valid",
                    {"Tocsin has not signed it, or with a secret that is no longer used. It may "
                     "be cut off: try the whole link of the message, or the command below it."},
                    {},
                    {}});
  }
  static HttpAnswer cannot(const core::Error& error) {
    return page_of(503, {"Nothing was done", {core::visible(error.message, 500) + "."}, {}, {}});
  }
  static int over_status(const AnswerView& view) { return view.state == State::over ? 410 : 200; }
  static LinkPage said(const AnswerView& view) {
    return {"Nothing to do", {view.words}, view.open, {}};
  }

  static LinkPage question(const AnswerTarget& target, const AnswerView& view) {
    LinkPage out;
    if (target.purpose == Purpose::silence) {
      out = {"Silence for 1 hour?",
             {"Nobody gets messages for 1 hour about " + actions::silenced_words(view.issue) +
                  ", whatever is found. Stops go on as configured.",
              "What fires now:"},
             {},
             "Silence for 1 hour"};
    } else {
      out = {
          "Acknowledge this incident?",
          {"It tells everybody that you have taken it on. Repeats and escalation stop until it is "
           "over. What is new, and the end, is still told.",
           "What fires now:"},
          {},
          "Acknowledge"};
    }
    out.list = view.open;
    if (view.more_open > 0) out.list.push_back(std::to_string(view.more_open) + " more");
    return out;
  }

  LinkSeal seal_;
  ApiDesk& desk_;
  core::Counter& refused_;
};

}  // namespace

std::vector<HttpRoute> link_routes(const LinkConfig& config, ApiDesk& desk,
                                   core::Telemetry& telemetry) {
  const auto pages = std::make_shared<LinkPages>(config, desk, telemetry);
  constexpr const char* kHtmlType = "text/html; charset=utf-8";
  HttpRoute shown{"GET", "/act/{link}", kHtmlType, {}, false, true};
  shown.handler = [pages](const HttpRequest& request) { return pages->show(request); };
  HttpRoute done{"POST", "/act/{link}", kHtmlType, {}, false, true};
  done.handler = [pages](const HttpRequest& request) { return pages->act(request); };
  HttpRoute style{"GET", "/act.css", "text/css; charset=utf-8", {}, false, false};
  style.handler = [](const HttpRequest&) {
    return HttpAnswer{200,
                      std::string(link_page_style()),
                      {},
                      {{"Cache-Control", "max-age=3600"}, {"X-Content-Type-Options", "nosniff"}}};
  };
  if (const auto secret = LinkSeal(config).sign(""); !secret) {
    desk.log.warn("link_secret_unusable", {{"error", secret.error().message}});
  }
  return {std::move(shown), std::move(done), std::move(style)};
}

}  // namespace tocsin::app
