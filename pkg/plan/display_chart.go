package plan

import "strings"

// Chart is a plan's chart of an experiment's variants.
type Chart struct {
	Name  string
	Title string            // Name by default
	Over  Over              // the x axis
	Unit  string            // of the y axis; "" for none
	Log   bool              // logarithmic y axis
	Of    map[string]string // values of variables, as HCL literals: only variants with these are drawn; empty for all
	Lines []Column
	File  string `json:"-"`
	Line  int    `json:"-"`

	Variants []string // only these are drawn; empty for all
}

// Over says what a chart's x axis shows.
type Over string

// The x axes of charts, besides variables.
const (
	OverTime     Over = "time"     // seconds since the phase's start
	OverOps      Over = "ops"      // number of ops that have ended
	OverQuantile Over = "quantile" // share of ops that took no longer
)

// overVariable is the prefix of a variable on the x axis.
const overVariable = "var."

// Variable returns the variable on the x axis; "" for none.
func (o Over) Variable() string {
	name, is := strings.CutPrefix(string(o), overVariable)
	if !is {
		return ""
	}
	return name
}

// Draws reports whether the chart shows a variant that sets variables to these values, as HCL literals.
func (c *Chart) Draws(variant string, values map[string]string) bool {
	for name, value := range c.Of {
		if values[name] != value {
			return false
		}
	}
	return shows(c.Variants, variant)
}
