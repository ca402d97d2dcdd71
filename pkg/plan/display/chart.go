package display

import "strings"

// Chart is a chart of an experiment's variants that the plan describes.
type Chart struct {
	Name  string
	Title string            // Name when nothing is said
	Over  Over              // what is drawn from left to right
	Unit  string            // of what is drawn upwards; "" for none
	Log   bool              // upwards by the logarithm
	Of    map[string]string // values of variables, as HCL literals: it is of the variants that have them. Empty: of all
	Lines []Column
	File  string
	Line  int
}

// Over is what a chart draws from left to right.
type Over string

// What charts go over.
const (
	OverTime     Over = "time"     // seconds since the phase's start
	OverOps      Over = "ops"      // how many ops have ended: the number of the op
	OverQuantile Over = "quantile" // the share of ops that took no longer
)

// overVariable begins the name of a variable that a chart goes over.
const overVariable = "var."

// Variable returns the variable whose values a chart draws from left to right; "" for none.
func (o Over) Variable() string {
	name, is := strings.CutPrefix(string(o), overVariable)
	if !is {
		return ""
	}
	return name
}

// Draws says whether the chart is of a variant that sets variables to these values, as HCL literals.
func (c *Chart) Draws(values map[string]string) bool {
	for name, value := range c.Of {
		if values[name] != value {
			return false
		}
	}
	return true
}
