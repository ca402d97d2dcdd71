package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/plan"
)

func TestARampBeginsAtTheRateOfTheStageBefore(t *testing.T) {
	stages := plan.Stages{Stages: []plan.Stage{
		{Rate: 1000, Duration: 10 * time.Second},
		{Rate: 2000, Duration: 5 * time.Second, Ramp: time.Second},
	}}
	require.Equal(t, []plan.Shape{
		{Rate: 1000, Duration: 10 * time.Second},
		{Rate: 2000, From: 1000, Duration: 5 * time.Second, Ramp: time.Second},
	}, stages.Shapes())
	open := plan.Open{Rate: 500, Ramp: time.Second, Duration: 3 * time.Second}
	require.Equal(t, plan.Shape{Rate: 500, Ramp: time.Second, Duration: 3 * time.Second}, open.Shape())
}
