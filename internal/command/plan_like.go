package command

import (
	"cmp"
	_ "embed" // the plan
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/target/capture"
)

//go:embed profile.tmpl
var profilePlan string

// plainOps are the commands that are ops of every plan.
var plainOps = map[string]string{"GET": "get", "SET": "put", "DEL": "delete"}

// keysOf are the types of values, by how the names of their commands begin: the key of another type has another name.
var keysOf = regexp.MustCompile(`^(?:(?P<number>INCR|DECR)|(?P<bits>[GS]ETBIT|BIT)|(?P<geo>GEO)|(?P<log>PF)|(?P<set>SADD|SREM|SCARD|SIS|SM|SPOP|SRAND)|(?P<hash>H)|` +
	`(?P<sorted>Z)|(?P<stream>X)|(?P<list>[LR]))`)

// likeOp is an op of the plan's own.
type likeOp struct{ Name, Command string }

// like writes a plan whose load is like the requests of a trace.
func (f *initFlags) like(path string) ([]byte, error) {
	file, err := safefile.Open(f.trace)
	if err != nil {
		return nil, failed("%w", err)
	}
	p, err := capture.NewProfile(file)
	_ = file.Close() // it was only read
	if err != nil {
		return nil, failed("%s: %w", f.trace, err)
	}
	var mix []string
	var own []likeOp
	for _, o := range p.Ops {
		name, plain := plainOps[o.Words[0]]
		switch {
		case plain:
		case len(own) == ownOps-1:
			p.Requests, p.LeftOut = p.Requests-o.Count, p.LeftOut+o.Count
			continue
		default:
			name = opName(o.Words[0])
			own = append(own, likeOp{name, commandLike(o.Words)})
		}
		mix = append(mix, fmt.Sprintf("%s = %d", name, o.Count))
	}
	var sizes []string
	for _, size := range slices.Sorted(maps.Keys(p.Sizes)) {
		sizes = append(sizes, fmt.Sprintf(`"%dB" = %d`, size, p.Sizes[size]))
	}
	at := f.endpoints
	if len(at) == 0 {
		at = []string{"127.0.0.1:6379"}
	}
	return filled(profilePlan, path, struct {
		*capture.Profile
		Trace, File, Name, At, List, Sizes, Mix string
		Own                                     []likeOp
	}{
		p, filepath.Base(f.trace), path, planName(strings.TrimSuffix(filepath.Base(f.trace), ".trace")), at[0], listOf(at),
		cmp.Or(strings.Join(sizes, ", "), `"1B" = 1`), strings.Join(mix, ", "), own,
	})
}

// listOf is a list of texts as a plan writes it.
func listOf(texts []string) string {
	var all []string
	for _, text := range texts {
		all = append(all, quoted(text))
	}
	return strings.Join(all, ", ")
}

// commandLike is the command of an op.
func commandLike(words []string) string {
	prefix := ""
	for i, begins := range keysOf.FindStringSubmatch(words[0]) {
		if i > 0 && begins != "" {
			prefix = keysOf.SubexpNames()[i] + ":"
		}
	}
	like := []string{words[0], prefix + "{key}"}
	for _, w := range words[2:] {
		switch {
		case w == "":
			w = "{value}"
		case !utf8.ValidString(w) || strings.ContainsFunc(w, unicode.IsControl):
			w = "x"
		default:
			w = strings.NewReplacer("{", "{{", "}", "}}").Replace(w)
		}
		like = append(like, w)
	}
	return listOf(like)
}
