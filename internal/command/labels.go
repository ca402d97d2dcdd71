package command

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/loadgen/loadgen/internal/result/run"
)

const (
	maxLabels     = 32
	maxLabelBytes = 200 // the longest value
)

var labelName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,62}$`)

// parseLabels parses the values of --label.
func parseLabels(texts []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, text := range texts {
		name, value, found := strings.Cut(text, "=")
		_, again := labels[name]
		switch {
		case !found:
			return nil, fmt.Errorf("--label %q: write NAME=VALUE", text)
		case !labelName.MatchString(name):
			return nil, fmt.Errorf("--label %q: a name begins with a letter and has up to 62 more letters, digits, '_', '.' and '-'", text)
		case again:
			return nil, fmt.Errorf("--label %s is given twice", name)
		case value == "" || len(value) > maxLabelBytes || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }):
			return nil, fmt.Errorf("--label %q: a value is plain text of 1 to %d bytes", text, maxLabelBytes)
		}
		labels[name] = value
	}
	if len(labels) > maxLabels {
		return nil, fmt.Errorf("--label is given %d times, at most %d are kept", len(labels), maxLabels)
	}
	return labels, nil
}

// labelled returns the runs that have all the labels.
func labelled(runs []run.Summary, labels map[string]string) (list []run.Summary) {
	for _, s := range runs {
		all := true
		for name, value := range labels {
			has, ok := s.Labels[name]
			all = all && ok && has == value
		}
		if all {
			list = append(list, s)
		}
	}
	return list
}
