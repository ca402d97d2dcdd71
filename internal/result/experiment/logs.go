package experiment

import (
	"fmt"
	"slices"

	"github.com/loadgen/loadgen/internal/result/run"
)

// logs describes the log files of all runs that count: where they were and how durable, caveats, and how many entries were verified.
func (c *comparer) logs() []string {
	said := []string{}
	var acknowledged, verified uint64
	unproven, written := 0, 0
	for _, v := range c.x.Variants {
		for _, r := range c.runs[v.Name] {
			for _, name := range r.PhaseOrder {
				p := r.Phase[name]
				if p == nil || p.Log == nil {
					continue
				}
				for _, text := range append([]string{durability(p)}, p.Log.Caveats...) {
					if !slices.Contains(said, text) {
						said = append(said, text)
					}
				}
				switch {
				case p.Log.Proof != nil:
					acknowledged, verified = acknowledged+p.Log.Proof.Acknowledged, verified+p.Log.Proof.Verified
				case p.Log.Bytes > 0:
					unproven++
				}
				written++
			}
		}
	}
	if written == 0 {
		return said
	}
	found := fmt.Sprintf("verified %d/%d entries that must be there, by another process", verified, acknowledged)
	if unproven > 0 {
		found += fmt.Sprintf("; nothing in %d of %d phases", unproven, written)
	}
	return append(said, found)
}

func durability(p *run.Phase) string {
	l := p.Log
	asked := ""
	if l.SyncAsked != l.SyncUsed {
		asked = " where " + l.SyncAsked + " was asked,"
	}
	text := fmt.Sprintf("sync %s used%s on %s", l.SyncUsed, asked, l.FileSystem)
	if !l.Durable {
		text += ", NOT durable"
	}
	return text
}
