package engine

// Binary heaps over slices, with the order as an argument.

func heapify[T any](h []T, less func(a, b T) bool) {
	for i := len(h)/2 - 1; i >= 0; i-- {
		sift(h, i, less)
	}
}

// push adds x.
func push[T any](h []T, x T, less func(a, b T) bool) []T {
	h = append(h, x)
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !less(h[i], h[parent]) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
	return h
}

// pop removes the first element; there must be one.
func pop[T any](h []T, less func(a, b T) bool) []T {
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	sift(h, 0, less)
	return h
}

// sift restores the order after element i has become later.
func sift[T any](h []T, i int, less func(a, b T) bool) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && less(h[child+1], h[child]) {
			child++
		}
		if !less(h[child], h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
