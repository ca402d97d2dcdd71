package plan

import (
	"bytes"
	"regexp"
)

// otherFile is a kind of file that is given as a plan by mistake, recognised by its first line.
type otherFile struct {
	first *regexp.Regexp
	is    string
	write string
}

const (
	writeTargets = `Name it in a plan, as plans/vegeta.hcl does: the keys of a dataset are those of file = "FILE" in form = "vegeta" (docs/web.md).`
	writePlan    = "Write the plan in HCL: loadgen plan init writes one to begin with"
)

var otherFiles = []otherFile{
	{regexp.MustCompile(`^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) https?://`), "targets of vegeta", writeTargets},
	{regexp.MustCompile(`^\{.*"(method|url)" *:.*"(method|url)" *:`), "targets of vegeta in JSON", writeTargets},
	{regexp.MustCompile(`^\[+[A-Za-z0-9_. -]+\]+ *$`), "TOML", writePlan + "."},
	{regexp.MustCompile(`^[\[{]`), "JSON", writePlan + "; what loadgen plan show prints is for workers."},
	{regexp.MustCompile(`^(<\?xml|<jmeterTestPlan)`), "XML", writePlan + ", and docs/coming-from.md has JMeter's words."},
	{regexp.MustCompile(`^(import .* from |import ['"]|export |const |'use strict')`), "JavaScript", writePlan + ", and docs/coming-from.md has k6's words."},
	{regexp.MustCompile(`^(---|%YAML|- |["A-Za-z0-9_.-]+:( |$))`), "YAML", writePlan + "."},
}

// otherFileOf returns the kind of a text that is not HCL; nil if it is none of these.
func otherFileOf(src []byte) *otherFile {
	const longest = 1 << 10 // bytes of the line that are examined
	for line := range bytes.Lines(src) {
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\uFEFF")))
		if len(line) == 0 || line[0] == '#' || bytes.HasPrefix(line, []byte("//")) {
			continue
		}
		for i := range otherFiles {
			if otherFiles[i].first.Match(line[:min(len(line), longest)]) {
				return &otherFiles[i]
			}
		}
		return nil
	}
	return nil
}
