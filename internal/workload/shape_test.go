package workload

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/pace"
	"github.com/loadgen/loadgen/pkg/plan"
)

func TestARampBeginsAtTheRateOfTheStageBefore(t *testing.T) {
	require.Equal(t, []pace.Shape{
		{Rate: 1000, Duration: 10 * time.Second},
		{Rate: 2000, From: 1000, Duration: 5 * time.Second, Ramp: time.Second},
	}, Shapes(&plan.Stages{Stages: []plan.Stage{
		{Rate: 1000, Duration: 10 * time.Second},
		{Rate: 2000, Duration: 5 * time.Second, Ramp: time.Second},
	}}))
	require.Equal(t, pace.Shape{Rate: 500, Ramp: time.Second, Duration: 3 * time.Second},
		Shape(&plan.Open{Rate: 500, Ramp: time.Second, Duration: 3 * time.Second}))
}
