"""Jira's REST API, version 2, as Cloud has it (search/jql, address and API token).

Contract: developer.atlassian.com, Jira Cloud REST API v2: create issue, get issue (expand=transitions), search for issues using JQL, add
comment, transition issue; the limits of summary (255), description (32767) and labels (255, no blank).
"""
import base64
import re

from tests.fakes.far_side import Checks, FarSide, Refused

JQL = re.compile(r'project = "(\w+)" AND labels = "([\w-]+)" AND statusCategory != Done ORDER BY created DESC')
API = "/rest/api/2"


class Jira(FarSide):
    """`messages` are issues: {key, fields, status, comments}."""

    email = "tocsin@example.com"

    @property
    def api_token(self):
        return self.secret.replace("/", "-") + "-jira"

    @staticmethod
    def _error(status, why, field=None):
        return Refused(status, {"errorMessages": [] if field else [why], "errors": {field: why} if field else {}}, why)

    def answer(self, method, path, query, headers, body):
        if headers.get("authorization") != "Basic " + base64.b64encode(f"{self.email}:{self.api_token}".encode()).decode():
            raise self._error(401, "Client must be authenticated to access this resource.")
        check = Checks(lambda why: self._error(400, why))
        if (method, path) == ("GET", API + "/search/jql"):
            check.keys("query", query, ("jql", "fields", "maxResults"))
            wanted = JQL.fullmatch(query["jql"])
            if not wanted:
                raise self._error(400, f"JQL: {query['jql']}")
            found = [one for one in self.messages if wanted[2] in one["fields"]["labels"] and one["status"] != "Done"]
            return 200, {"issues": [{"id": "1", "key": one["key"], "fields": {"status": {"name": one["status"]}}} for one in found], "isLast": True}
        if (method, path) == ("POST", API + "/issue"):
            return self._create(check, check.json_object(headers, body))
        of_issue = re.fullmatch(API + r"/issue/(\w+-\d+)(/comment|/transitions)?", path)
        issue = next((one for one in self.messages if of_issue and one["key"] == of_issue[1]), None)
        if issue is None:
            raise self._error(404, "Issue does not exist or you do not have permission to see it.")
        if method == "GET" and not of_issue[2]:
            check.keys("query", query, ("fields", "expand"))
            done = issue["status"] == "Done"
            offered = [] if done else [{"id": "31", "name": "Close it", "to": {"name": "Done"}}]
            return 200, {"key": issue["key"], "transitions": offered,
                         "fields": {"status": {"name": issue["status"], "statusCategory": {"key": "done" if done else "new"}}}}
        change = check.json_object(headers, body)
        if (method, of_issue[2]) == ("POST", "/comment"):
            check.keys("comment", change, ("body",), ("visibility", "properties"))
            check.text("comment.body", change["body"], 32_767)
            issue["comments"].append(change["body"])
            return 201, {"id": str(len(issue["comments"])), "body": change["body"]}
        if (method, of_issue[2]) == ("POST", "/transitions"):
            if change != {"transition": {"id": "31"}} or issue["status"] == "Done":
                raise self._error(400, "Transition id is not valid for this issue.")
            issue["status"] = "Done"
            return 204, ""
        raise self._error(405, method)

    def _create(self, check, body):
        check.keys("issue", body, ("fields",))
        fields = body["fields"]
        check.keys("fields", fields, ("project", "issuetype", "summary"), ("description", "labels", "priority", "components"))
        if fields["project"] != {"key": "OPS"}:
            raise self._error(400, "valid project is required", "project")
        if fields["issuetype"] not in ({"name": "Task"}, {"name": "Incident"}):
            raise self._error(400, "Specify a valid issue type", "issuetype")
        check.text("summary", fields["summary"], 255)
        check.text("description", fields["description"], 32_767)
        for label in fields["labels"]:
            check.text("label", label, 255)
            if " " in label:
                raise self._error(400, "The label contains spaces", "labels")
        key = f"OPS-{len(self.messages) + 1}"
        self.messages.append({"key": key, "fields": fields, "status": "To Do", "comments": []})
        return 201, {"id": str(10_000 + len(self.messages)), "key": key, "self": f"{self.root}{API}/issue/{key}"}

    def text_of(self, message):
        return "\n".join([f"{message['key']} {message['status']}: {message['fields']['summary']}", message["fields"]["description"],
                          *(f"-- comment --\n{comment}" for comment in message["comments"])])
