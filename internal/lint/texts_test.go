package lint_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/result/expr"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/plan"
)

// mark matches notes of unfinished work, and instructions that make a linter look away.
var mark = regexp.MustCompile(`\b(TODO|FIXME|nolint|lint:(file-)?ignore|nosec)\b`)

func marks(m *module) []string {
	var found []string
	for _, name := range m.texts {
		if !strings.HasPrefix(name, "internal/lint/") { // it has to spell them
			found = append(found, m.lines(name, func(line string) []string { return mark.FindAllString(line, -1) })...)
		}
	}
	return found
}

// registry matches the beginnings of package registries' host names.
var registry = regexp.MustCompile(`(?i)\b((repo[0-9]*|search|central)\.(maven|sonatype)|(proxy|sum|index)\.golang|registry\.(npmjs|yarnpkg)|files\.pythonhosted|(static|index)\.crates|(deb|archive|security)\.(debian|ubuntu)|registry-1\.docker)\b`)

// registries finds hosts of package registries: packages are fetched by ordinary clients, which know where, and a machine may have a mirror.
func registries(m *module) []string {
	var found []string
	for _, name := range m.texts {
		if strings.HasPrefix(name, "internal/lint/") { // it has to spell them
			continue
		}
		found = append(found, m.lines(name, func(line string) (hosts []string) {
			for _, host := range registry.FindAllString(line, -1) {
				hosts = append(hosts, host+": a registry's host; have its own client fetch by name")
			}
			return hosts
		})...)
	}
	return found
}

// assembly finds assembly where none is needed. A file of comments only lets a package have functions without a body.
func assembly(m *module) []string {
	var found []string
	for _, name := range m.texts {
		if path.Ext(name) != ".s" || path.Dir(name) == "pkg/pmem" {
			continue
		}
		code := m.lines(name, func(line string) []string {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "//") {
				return nil
			}
			return []string{line}
		})
		if len(code) > 0 {
			found = append(found, name+": assembly: only pkg/pmem has some, for instructions that no compiler emits")
		}
	}
	return found
}

// lines applies in to each line of a text file and returns what it finds.
func (m *module) lines(name string, in func(line string) []string) []string {
	b, err := fs.ReadFile(m.fsys, name)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		for _, what := range in(line) {
			found = append(found, fmt.Sprintf("%s:%d: %s", name, n, what))
		}
	}
	return found
}

var (
	home    = regexp.MustCompile(`/(home|root|Users)/[^\s"]+`)
	address = regexp.MustCompile(`\b([0-9]{1,3}\.){3}[0-9]{1,3}\b`)
	host    = regexp.MustCompile(`"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+:[0-9]+\\?"`)
	example = regexp.MustCompile(`\.example(\.(com|net|org))?:|example\.(com|net|org):`) // RFC 2606

	// examples are the loopback, any address of this machine, RFC 5737's blocks for documentation, and a network that stands for the reader's own.
	examples = []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("0.0.0.0/32"), netip.MustParsePrefix("10.0.0.0/24"),
		netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	}
)

// places finds real machines in plans and pages: home directories, and addresses and hosts that are not for examples.
func places(m *module) []string {
	var found []string
	for _, name := range m.texts {
		if ext := path.Ext(name); ext == ".hcl" || ext == ".md" {
			found = append(found, m.lines(name, placesIn)...)
		}
	}
	return found
}

func placesIn(line string) []string {
	found := home.FindAllString(line, -1)
	for _, s := range address.FindAllString(line, -1) {
		ip, err := netip.ParseAddr(s)
		if err == nil && !slices.ContainsFunc(examples, func(p netip.Prefix) bool { return p.Contains(ip) }) {
			found = append(found, s)
		}
	}
	for _, s := range host.FindAllString(line, -1) {
		if !address.MatchString(s) && !example.MatchString(s) {
			found = append(found, s)
		}
	}
	return found
}

// fence matches a block of HCL in a page.
var fence = regexp.MustCompile("(?ms)^```hcl\n(.*?)^```")

// plans finds invalid plan files, invalid whole plans in pages, and examples that no page names.
func plans(m *module) []string {
	found := unnamed(m)
	for _, name := range m.texts {
		b, err := fs.ReadFile(m.fsys, name)
		if err != nil {
			found = append(found, err.Error())
		}
		switch path.Ext(name) {
		case ".hcl":
			found = append(found, planFaults(name, b)...)
		case ".md":
			for i, block := range fence.FindAllSubmatch(b, -1) {
				if strings.HasPrefix(string(block[1]), "plan ") {
					found = append(found, planFaults(fmt.Sprintf("%s fence %d", name, i+1), block[1])...)
				}
			}
		}
	}
	return found
}

// unnamed returns the example plans that no page names.
func unnamed(m *module) []string {
	examples := map[string]bool{}
	var pages []byte
	for _, name := range m.texts {
		switch dir, ext := path.Dir(name), path.Ext(name); {
		case dir == "plans" && ext == ".hcl":
			examples[name] = true
		case ext == ".md":
			b, err := fs.ReadFile(m.fsys, name)
			if err != nil {
				return []string{err.Error()}
			}
			pages = append(pages, b...)
		}
	}
	var found []string
	for name := range examples {
		if !bytes.Contains(pages, []byte(name)) {
			found = append(found, name+": no page names it")
		}
	}
	return found
}

func planFaults(name string, src []byte) []string {
	f, diags := plan.Parse(src, name, drivers.All())
	if f != nil {
		_, diags = f.Resolve(plan.Vars{})
		e, more := f.Experiment()
		tables, wrong := f.Tables()
		diags = append(append(diags, more...), wrong...)
		if e != nil {
			for _, v := range e.Variants {
				_, more := f.Resolve(plan.Vars{Variant: v.Name})
				diags = append(append(diags, more...), expr.CheckTables(f.Draft(), plan.Shown(tables, v.Name), e.Variants)...)
			}
		}
	}
	var found []string
	for _, d := range diags {
		found = append(found, d.Error())
	}
	return found
}
