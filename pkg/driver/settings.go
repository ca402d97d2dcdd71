package driver

import "fmt"

// ConfigOf returns a target's config as the type that the driver's NewConfig returns. It refuses another driver's config, and an invalid one.
func ConfigOf[C interface{ Validate() error }](driver string, config any) (C, error) {
	own, ok := config.(C)
	if !ok {
		return own, fmt.Errorf("%s: config is a %T, want a %T", driver, config, own)
	}
	if err := own.Validate(); err != nil {
		return own, fmt.Errorf("%s: %w", driver, err)
	}
	return own, nil
}
