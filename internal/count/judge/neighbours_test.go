package judge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
)

// loadOn is a closed load with this data from its workers.
func loadOn(workers ...measure.Generator) *run.Phase {
	return NewPhase(testPlan(), closedPhase(), Measured{Endpoints: endpoints, Load: closedLoad(1000, ms, 0, always(driver.OK)), Generators: workers})
}

// TestStarvedTargetsAreNotCalledValid: others use the processors while the target may need them.
func TestStarvedTargetsAreNotCalledValid(t *testing.T) {
	for _, c := range []struct {
		others, idle float64
		want         run.Validity
	}{
		{0.06, 0.09, run.Suspect},
		{0.6, 0, run.Suspect},
		{0.05, 0, run.Valid},
		{0.9, 0.1, run.Valid},
		{0, 0, run.Valid},
	} {
		p := loadOn(measure.Generator{Machine: &measure.Machine{OthersShare: c.others, IdleShare: c.idle}})
		require.Equal(t, c.want, p.Validity, c)
		require.Equal(t, c.want, p.ValidityOf("op.get.rate"), c)
		require.Equal(t, c.want, p.ValidityOf("op.get.response.p99"), c)
	}
	p := loadOn(measure.Generator{Machine: &measure.Machine{OthersShare: 0.31, IdleShare: 0.02}})
	require.Equal(t, []string{"processes other than loadgen's and the target's had 31 % of the processors' time on a worker's machine, and 2 % of it was idle: " +
		"loadgen or the target may have wanted it; stop them, or run where they are not"}, texts(p))
}

func TestWorkersOnOneMachineAreNotOthers(t *testing.T) {
	on := func(host string, others, cpu float64) measure.Generator {
		return measure.Generator{CPUSeconds: cpu, Machine: &measure.Machine{Host: host, Seconds: 10, OthersShare: others}}
	}
	others := func(all ...measure.Generator) float64 { return mergeGenerators(all).Machine.OthersShare }
	require.InDelta(t, 0.1, others(on("a", 0.5, 3), on("a", 0.4, 4)), 1e-9)
	require.InDelta(t, 0.5, others(on("a", 0.5, 3), on("b", 0.4, 4)), 1e-9, "two machines")
	require.InDelta(t, 0, others(on("a", 0.3, 3), on("a", 0.3, 4)), 1e-9, "never below nothing")
	require.InDelta(t, 0.5, others(on("", 0.5, 3), on("", 0.4, 4)), 1e-9, "one after the other")
	require.InDelta(t, 0.5, others(measure.Generator{CPUSeconds: 9}, on("a", 0.5, 3)), 1e-9, "what some do not know is that of the others")

	bad, idle := &measure.Machine{OthersShare: 0.06}, &measure.Machine{OthersShare: 0.2, IdleShare: 0.5}
	for _, all := range [][]measure.Generator{{{Machine: bad}, {Machine: idle}}, {{Machine: idle}, {Machine: bad}}} {
		require.Equal(t, bad, mergeGenerators(all).Machine, "what is a doubt comes before what is none")
	}
}

func TestWhyAMachineIsNotKnown(t *testing.T) {
	p := loadOn(measure.Generator{MachineUnknown: "no such file"}, measure.Generator{MachineUnknown: "another"})
	require.Nil(t, p.Generator.Machine)
	require.Equal(t, "no such file", p.Nulls["generator.machine"])
	require.Equal(t, run.Valid, p.Validity, p.Reasons)
	require.Equal(t, "it is read while a load is measured, and no worker says", loadOn().Nulls["generator.machine"])
	p = loadOn(measure.Generator{MachineUnknown: "no such file"}, measure.Generator{Machine: &measure.Machine{IdleShare: 1}})
	require.Equal(t, &measure.Machine{IdleShare: 1}, p.Generator.Machine)
	require.NotContains(t, p.Nulls, "generator.machine")
}

func TestMachineIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		m    measure.Machine
		want string
	}{
		"all idle":       {measure.Machine{IdleShare: 1}, ""},
		"all of others":  {measure.Machine{OthersShare: 1}, "judged valid, but others had 1 of the processors, and 0 of them was idle"},
		"more than all":  {measure.Machine{OthersShare: 0.5, IdleShare: 0.75}, "others had 0.5 of the machine's processors, and 0.75 of them was idle"},
		"less than none": {measure.Machine{OthersShare: -0.5, IdleShare: 0.5}, "others had -0.5 of"},
		"negative idle":  {measure.Machine{OthersShare: 0.5, IdleShare: -0.5}, "and -0.5 of them was idle"},
	} {
		r := run.New(run.Header{}, run.Environment{})
		r.Add("get", loadOn())
		r.Phase["get"].Generator.Machine = &c.m
		if c.want == "" {
			require.NoError(t, r.CheckValid(), name)
			continue
		}
		require.ErrorContains(t, r.CheckValid(), c.want, name)
	}
	r := run.New(run.Header{}, run.Environment{})
	r.Add("get", loadOn(measure.Generator{Machine: &measure.Machine{OthersShare: 1}}))
	require.NoError(t, r.CheckValid(), "it is judged suspect")
}

// What workers used adds up; the elapsed time is the longest.
func TestWhatWorkersHaveSpent(t *testing.T) {
	one := measure.Generator{Spent: measure.Spent{ElapsedSeconds: 4}, CPUSeconds: 1, ProductiveSeconds: 2, GCCycles: 3, Mallocs: 5}
	other := measure.Generator{Spent: measure.Spent{ElapsedSeconds: 3}, CPUSeconds: 10, ProductiveSeconds: 20, GCCycles: 30, Mallocs: 50}
	for _, all := range [][]measure.Generator{{one, other}, {other, one}} {
		require.Equal(t, measure.Generator{Spent: measure.Spent{ElapsedSeconds: 4}, CPUSeconds: 11, ProductiveSeconds: 22, GCCycles: 33, Mallocs: 55}, mergeGenerators(all))
	}
}
