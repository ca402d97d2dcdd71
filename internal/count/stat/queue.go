package stat

import "math"

// MD1Wait returns the quantile q, 0 < q < 1, of a customer's waiting time in an M/D/1 queue: Poisson arrivals, one server that is busy for the share
// 0 ≤ load < 1 of the time, and a constant service time. The result is in service times.
//
// The distribution is Erlang's (The theory of probabilities and telephone conversations, 1909): with a load ρ and times in service times,
//
//	P(W ≤ t) = (1 − ρ) Σ_{k=0}^{⌊t⌋} [ρ(k − t)]^k / k! · e^{−ρ(k − t)}
//
// Its terms alternate and grow, so beyond 16 service times it uses the exponential tail that the distribution approaches (Cohen, The Single Server
// Queue, 1982): P(W > t) ≈ (1 − ρ) / (ρ·e^x − 1) · e^{−x·t}, where x > 0 solves ρ(e^x − 1) = x.
func MD1Wait(load, q float64) float64 {
	if 1-load >= q {
		return 0 // at least the share q does not wait at all
	}
	decay := md1Decay(load)
	return end(func(t float64) bool { return md1Tail(load, decay, t) > 1-q })
}

// md1Tail returns P(W > t).
func md1Tail(load, decay, t float64) float64 {
	const exact = 16
	if t > exact {
		return (1 - load) / (load*math.Exp(decay) - 1) * math.Exp(-decay*t)
	}
	sum, factorial := 0.0, 1.0
	for k := 0.0; k <= math.Floor(t); k++ {
		if k > 0 {
			factorial *= k
		}
		a := load * (k - t)
		sum += math.Pow(a, k) / factorial * math.Exp(-a)
	}
	return 1 - (1-load)*sum
}

// md1Decay solves ρ(e^x − 1) = x for x > 0.
func md1Decay(load float64) float64 {
	return end(func(x float64) bool { return load*math.Expm1(x) < x })
}
