package plan

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// The ways to pick keys.
const (
	uniformPick  = "uniform"
	zipfPick     = "zipf"
	hotspotPick  = "hotspot"
	latestPick   = "latest"
	sequencePick = "sequence"
)

// InOrder reports whether a session takes its keys in order, to their end.
func (k *Keys) InOrder() bool { return k.Pick == sequencePick }

// Uniform reports whether all keys are equally likely.
func (k *Keys) Uniform() bool { return k.Pick == uniformPick }

// Zipf reports whether a few keys, spread over the space, are picked far more often than most.
func (k *Keys) Zipf() bool { return k.Pick == zipfPick }

// Latest reports whether the most recently put keys are picked most often.
func (k *Keys) Latest() bool { return k.Pick == latestPick }

// Hotspot reports whether a share HotOps of the ops goes to a share HotKeys of the keys.
func (k *Keys) Hotspot() bool { return k.Pick == hotspotPick }

// ycsb is YCSB's form of zipf, see [Keys].
const ycsb = "ycsb"

// YCSB reports whether keys are drawn by YCSB's form of zipf.
func (k *Keys) YCSB() bool { return k.Form == ycsb }

// ycsbSkew is the only skew of YCSB's form: its sum over all ranks is a constant in YCSB.
const ycsbSkew = 0.99

// writePick lists the ways of picking keys.
const writePick = `Write "uniform", "zipf(0.99)", "zipf(0.99, ycsb)", "hotspot(80% on 20%)", "latest" or "sequence".`

// pick reads how keys are picked.
func (b *block) pick(k *Keys) {
	text := k.Pick
	b.Text("pick", &text)
	word, rest, called := strings.Cut(text, "(")
	inner, closed := strings.CutSuffix(rest, ")")
	var ok bool
	switch {
	case word == latestPick && !called:
		ok = k.zipf(word, "0.99")
	case !called:
		k.Pick, ok = word, word == uniformPick || word == sequencePick
	case !closed:
	case word == zipfPick || word == latestPick:
		ok = k.zipf(word, inner)
	case word == hotspotPick:
		ok = k.hotspot(inner)
	}
	if !ok && b.Has("pick") {
		b.Bad("pick", "unknown way to pick keys "+dialect.Quote(text), cmp.Or(Meant("pick", text), writePick))
	}
}

// zipf reads "s" or "s, ycsb".
func (k *Keys) zipf(pick, text string) bool {
	skew, form, two := strings.Cut(text, ",")
	s, rest, err := dialect.CutNumber(strings.TrimSpace(skew))
	k.Pick, k.Skew, k.Form = pick, s, strings.TrimSpace(form)
	return err == nil && rest == "" && two == k.YCSB()
}

// hotspot reads "80% on 20%".
func (k *Keys) hotspot(text string) bool {
	ops, keys, two := strings.Cut(text, " on ")
	var errs [2]error
	k.Pick = hotspotPick
	k.HotOps, errs[0] = dialect.ParseShare(strings.TrimSpace(ops))
	k.HotKeys, errs[1] = dialect.ParseShare(strings.TrimSpace(keys))
	return two && errs[0] == nil && errs[1] == nil
}

// Picking describes how keys are picked, for results.
func (k *Keys) Picking() string {
	percent := func(share float64) string { return strconv.FormatFloat(share*100, 'g', 6, 64) + "%" }
	switch {
	case k.Pick == hotspotPick:
		return fmt.Sprintf("hotspot(%s on %s)", percent(k.HotOps), percent(k.HotKeys))
	case k.Form != "":
		return fmt.Sprintf("%s(%g, %s)", k.Pick, k.Skew, k.Form)
	}
	return k.Pick
}

// Hot returns the number of hot keys of a hotspot.
func (k *Keys) Hot() int64 { return int64(math.Round(k.HotKeys * float64(k.Count))) }

// pick checks how keys are picked.
func (v *validator) pick(at part, k *Keys) {
	v.oneOf(at, "pick", k.Pick, uniformPick, zipfPick, hotspotPick, latestPick, sequencePick)
	path := at.path + ".pick"
	skewed := k.Pick == zipfPick || k.Pick == latestPick
	switch {
	case skewed && !(k.Skew > 0 && k.Skew <= maxSkew):
		v.fault(fmt.Sprintf("%s: %s(%g)", at.where, k.Pick, k.Skew), fmt.Sprintf(`Write a skew above 0 and up to 10: "%s(0.99)".`, k.Pick), path)
	case !skewed && k.Skew != 0:
		v.fault(fmt.Sprintf("%s: a skew of %g without zipf", at.where, k.Skew), "Write 0.", path)
	}
	switch {
	case k.Form != "" && (!k.YCSB() || k.Pick != zipfPick):
		v.fault(fmt.Sprintf("%s: form %s of %s", at.where, dialect.Quote(k.Form), k.Pick), `Write "zipf(0.99, ycsb)", or no form.`, path)
	case k.YCSB() && k.Skew != ycsbSkew:
		v.fault(fmt.Sprintf("%s: zipf(%g, ycsb)", at.where, k.Skew), `Write "zipf(0.99, ycsb)", the only skew that form has, or another skew without ycsb.`, path)
	}
	if k.Pick == latestPick && k.PerSession() {
		v.fault(at.where+": latest in session pools", `Write scope = "shared": what a session puts is its own anyway.`, at.path+".scope", path)
	}
	v.hotspot(at, k)
}

// hotspot checks that there are both hot and cold keys.
func (v *validator) hotspot(at part, k *Keys) {
	path := at.path + ".pick"
	switch {
	case k.Pick != hotspotPick:
		if k.HotOps != 0 || k.HotKeys != 0 {
			v.fault(fmt.Sprintf("%s: hot keys without hotspot", at.where), "Write 0.", path)
		}
	case !(k.HotOps > 0 && k.HotOps <= 1 && k.HotKeys > 0 && k.HotKeys < 1):
		v.fault(fmt.Sprintf("%s: %s", at.where, k.Picking()), `Write shares of ops and of keys such as "hotspot(80% on 20%)", above 0% and with some keys that are not hot.`, path)
	case k.Hot() < 1 || k.Hot() >= k.Count:
		v.fault(fmt.Sprintf("%s: %d of %d keys are hot", at.where, k.Hot(), k.Count), "Write another share or a larger count: one key at least is hot, and one is not.", path, at.path+".count")
	}
}

// growing checks a phase on a dataset whose keys are picked by recency. A load must put. A clear cannot delete such keys one by one.
func (v *validator) growing(ph *Phase, d *Dataset, at part) {
	switch {
	case d.Keys.Pick != latestPick:
	case ph.Clear != nil && !v.plan.flushes(ph):
		v.fault(fmt.Sprintf("%s: clear of dataset %q, to which loads add keys", at.where, d.Name),
			"Leave it out and empty the servers by other means, or use built-in nodes, which are emptied whole: how many keys a load adds is not known beforehand.",
			at.path+".clear", "dataset."+d.Name+".keys.pick")
	case ph.Levels() > 0 && weightOf(ph.Ops, driver.Put) == 0:
		v.fault(fmt.Sprintf("%s: the latest keys of dataset %q without a put", at.where, d.Name),
			"Write ops with put, which adds a key, or another pick: reads go to the keys that their own stream has put.", at.path+".ops", "dataset."+d.Name+".keys.pick")
	}
}

// Levels returns the most steps that the phase's load can have; 0 when the phase has no load.
func (ph *Phase) Levels() int {
	switch {
	case ph.Stages != nil:
		return len(ph.Stages.Stages)
	case ph.Search != nil:
		return int(ph.Search.Budget/max(ph.Search.StepDuration, minStep)) + 2 // and the closed step
	case ph.Closed != nil || ph.Open != nil:
		return 1
	}
	return 0
}

// hitRatio checks a requested hit ratio: nothing else in the phase may decide which gets hit.
func (v *validator) hitRatio(ph *Phase, at part) {
	h, path := ph.HitRatio, at.path+".hit_ratio"
	switch {
	case h == nil:
	case !(*h > 0 && *h <= 1):
		v.fault(fmt.Sprintf("%s: hit_ratio = %g", at.where, *h), `Write a share above 0 and up to 1, or "90%".`, path)
	case ph.Levels() == 0 || weightOf(ph.Ops, driver.Get) == 0:
		v.fault(at.where+": hit_ratio without gets", "Leave hit_ratio out, or write ops with get.", path, at.path+".ops")
	case weightOf(ph.Ops, driver.Delete) > 0 || len(ph.Scenarios) > 0:
		v.fault(at.where+": hit_ratio with deletes or scenarios", "Leave one of them out: with hit_ratio, gets alone decide what is found.", path, at.path+".ops")
	case ph.ExpectHits != nil:
		v.fault(at.where+": both hit_ratio and expect_hits", "Leave expect_hits out: the result says how far the hits are from hit_ratio.", path, at.path+".expect_hits")
	}
}
