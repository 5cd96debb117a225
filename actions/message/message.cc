#include "actions/message/message.h"

#include <algorithm>
#include <utility>

#include "actions/message/answer_links.h"
#include "actions/message/console_lines.h"
#include "actions/message/headline.h"
#include "actions/message/message_parts.h"
#include "actions/message/message_view.h"
#include "actions/message/template.h"

namespace tocsin::actions {
namespace {

constexpr std::size_t kColumn = 12;  // of values behind their names

std::string padded(std::string_view text, std::size_t width) {
  return std::string(text) + std::string(text.size() < width ? width - text.size() : 1, ' ');
}

void put_rows(const Rows& rows, std::string& out) {
  for (const auto& [name, value] : rows) out += "  " + padded(name, kColumn) + value + "\n";
}

void put_part(const Part& part, std::string& out) {
  if (part.rows.empty()) return;
  out += "\n" + part.heading + "\n";
  put_rows(part.rows, out);
}

void put_followers(const MessageParts& parts, std::string& out) {
  if (parts.followed.empty()) return;
  out += "\n" + parts.followed + "\n";
  for (const Follower& one : parts.followers) {
    out += "  " + padded(one.tag, 9) + one.title + (one.rest.empty() ? "" : " (" + one.rest + ")") +
           "\n";
  }
  if (!parts.hidden.empty()) out += "  … " + parts.hidden + "\n";
}

void put_advice(const std::vector<std::string>& advice, std::string& out) {
  if (advice.empty()) return;
  out += "\nWhat to do\n";
  for (const std::string& text : advice) out += (advice.size() > 1 ? "  - " : "  ") + text + "\n";
}

// A link on a line of its own: mail programs take it whole.
void put_answers(const Rows& links, std::string& out) {
  if (links.empty()) return;
  out += "\nAnswer (each link asks before it does anything)\n";
  for (const auto& [name, url] : links) out += "  " + name + "\n  " + url + "\n";
}

void put_commands(const std::vector<NextCommand>& commands, std::string& out) {
  if (commands.empty()) return;
  out += "\nNext\n";
  for (const NextCommand& one : commands) out += "  # " + one.does + "\n  " + one.line + "\n";
}

// Readable in light and dark, and on a telephone: nothing has a width of its own, and ids break.
constexpr char kHtml[] = R"(<!DOCTYPE html>
<html lang="en" dir="ltr"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="supported-color-schemes" content="light dark">
<title>{{headline}}</title>
<style>
:root{color-scheme:light dark}
body{margin:0;padding:16px;background:#fff;color:#1f2328;font:15px/1.45 -apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:46em;margin:0 auto;overflow-wrap:anywhere}
h1{font-size:1.2em;line-height:1.3;margin:0 0 .6em}
h2{font-size:.95em;margin:1.4em 0 .3em}
p{margin:.4em 0}
table{border-collapse:collapse;width:100%}
td{padding:.15em 0;vertical-align:top;unicode-bidi:isolate}
td.n{width:5.6em;padding-right:.8em;white-space:nowrap}
.q,td.n{color:#57606a}
.lead{border-left:4px solid;padding-left:12px}
ul{margin:.3em 0;padding-left:1.2em}
code{display:block;margin:.1em 0 .6em;padding:.5em .7em;background:#f6f8fa;color:#1f2328;border-radius:6px;font:13px/1.4 ui-monospace,Menlo,Consolas,monospace;white-space:pre-wrap}
summary{cursor:pointer;font-weight:bold;margin:1.4em 0 .3em}
.info{border-color:#1f6feb}.warning{border-color:#bf8700}.error{border-color:#cf222e}.critical{border-color:#82071e}.resolved{border-color:#1a7f37}
footer{margin-top:1.6em;font-size:.85em}
@media (prefers-color-scheme:dark){
body{background:#0d1117;color:#e6edf3}.q,td.n{color:#9198a1}a{color:#6cb6ff}code{background:#21262d;color:#e6edf3}
.info{border-color:#4493f8}.warning{border-color:#d29922}.error{border-color:#f85149}.critical{border-color:#ff7b72}.resolved{border-color:#3fb950}}
</style></head>
<body><main>
<h1>{{headline}}</h1>
{{#lead}}<div class="lead {{tone}}"><p>{{summary}}</p>
{{#description}}<p>{{description}}</p>
{{/description}}{{#details}}<table role="presentation">
{{#rows}}<tr><td class="n">{{name}}</td><td>{{#link}}<a href="{{value}}">{{value}}</a>{{/link}}{{^link}}{{value}}{{/link}}</td></tr>
{{/rows}}</table>
{{/details}}{{#console}}<span class="q">Last lines</span><code>{{console}}</code>
{{/console}}</div>
{{/lead}}{{#answers}}<p>{{#lines}}<a style="display:inline-block;margin:.2em .4em .2em 0;padding:.4em .9em;border:1px solid;border-radius:6px;color:inherit;text-decoration:none" href="{{value}}">{{name}}</a> {{/lines}}</p>
{{/answers}}{{#sections}}<h2>{{heading}}</h2><table role="presentation">
{{#rows}}<tr><td class="n">{{name}}</td><td>{{#link}}<a href="{{value}}">{{value}}</a>{{/link}}{{^link}}{{value}}{{/link}}</td></tr>
{{/rows}}</table>
{{/sections}}{{#advice}}<h2>{{heading}}</h2><ul>
{{#lines}}<li>{{value}}</li>
{{/lines}}</ul>
{{/advice}}{{#followed}}<details><summary>{{heading}}</summary><ul>
{{#followers}}<li>{{title}} <span class="q">{{tag}}{{#rest}}, {{rest}}{{/rest}}</span></li>
{{/followers}}</ul></details>
{{/followed}}{{#hidden}}<p class="q">… {{hidden}}</p>
{{/hidden}}{{#runs}}<h2>{{heading}}</h2><table role="presentation">
{{#rows}}<tr><td class="n">{{name}}</td><td>{{#link}}<a href="{{value}}">{{value}}</a>{{/link}}{{^link}}{{value}}{{/link}}</td></tr>
{{/rows}}</table>
{{/runs}}{{#links}}<h2>{{heading}}</h2><table role="presentation">
{{#rows}}<tr><td class="n">{{name}}</td><td>{{#link}}<a href="{{value}}">{{value}}</a>{{/link}}{{^link}}{{value}}{{/link}}</td></tr>
{{/rows}}</table>
{{/links}}<h2>Next</h2>
{{#commands}}<span class="q">{{does}}</span><code>{{line}}</code>
{{/commands}}<footer class="q">{{footer}}</footer>
</main></body></html>
)";

// A message that is over a limit of templates is filled in from the short form, which never is.
std::string filled(const Template& form, const core::Notification& notification,
                   const Sender& sender) {
  auto out = form.render(message_view(notification, sender));
  if (out || notification.minimal) return out ? std::move(*out) : headline(notification);
  core::Notification small = notification;
  small.minimal = true;
  return filled(form, small, sender);
}

}  // namespace

std::string text_body(const core::Notification& notification, const Sender& sender) {
  const MessageParts parts = message_parts(notification, sender);
  std::string out = parts.headline + "\n";
  if (!parts.summary.empty()) out += "\n" + parts.summary + "\n";
  if (!parts.description.empty()) out += parts.description + "\n";
  if (!parts.found.empty()) out += "\n";
  put_rows(parts.found, out);
  if (!parts.console.empty()) out += std::string("\n") + kConsoleHeading + "\n";
  for (const std::string& line : parts.console) out += "  " + line + "\n";
  put_part(parts.ended, out);
  put_part(parts.did, out);
  put_advice(parts.advice, out);
  put_followers(parts, out);
  if (parts.followed.empty() && !parts.hidden.empty()) out += "\n" + parts.hidden + "\n";
  for (const Part& run : parts.runs) put_part(run, out);
  put_part({"Links", parts.links}, out);
  put_answers(answer_links(notification, sender), out);
  put_commands(parts.commands, out);
  return out + "\n-- \n" + parts.footer + "\n";
}

std::string html_body(const core::Notification& notification, const Sender& sender) {
  static const Template kForm = *Template::parse(kHtml, Escape::html);
  return filled(kForm, notification, sender);
}

}  // namespace tocsin::actions
