package pgexport

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

//go:embed schema.sql
var schema string

// migrations lead from an empty schema to the current one. A released migration never changes.
var migrations = strings.Split(schema, "-----\n")

// onlyOne is the key of the advisory lock for migrations: "loadgen" as a number.
const onlyOne = 0x6c6f616467656e

// migrate brings the schema up to date. It writes nothing to a current schema, so a user who may only insert can push.
func (db *DB) migrate(ctx context.Context) error {
	version, err := db.version(ctx)
	if err != nil {
		return err
	}
	if version == len(migrations) {
		return nil
	}
	return db.inTransaction(ctx, func() error {
		if _, err := db.exec(ctx, `SELECT pg_advisory_xact_lock($1)`, onlyOne); err != nil {
			return err
		}
		version, err := db.version(ctx) // another process may have migrated the schema in the meantime
		if err != nil {
			return err
		}
		if version == 0 {
			const begin = `CREATE SCHEMA IF NOT EXISTS loadgen;
				CREATE TABLE loadgen.migrations (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`
			if err := db.script(ctx, begin); err != nil {
				return fmt.Errorf("make the schema loadgen: %w", err)
			}
		}
		for i := version; i < len(migrations); i++ {
			if err := db.script(ctx, migrations[i]); err != nil {
				return fmt.Errorf("bring the schema loadgen to version %d: %w", i+1, err)
			}
			if _, err := db.exec(ctx, `INSERT INTO loadgen.migrations (version) VALUES ($1)`, i+1); err != nil {
				return err
			}
		}
		return nil
	})
}

// version returns the version of the schema; 0 if there is none.
func (db *DB) version(ctx context.Context) (version int, err error) {
	// to_regclass is not used, because it may give a cached answer from before the lock.
	const look = `SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = 'loadgen' AND tablename = 'migrations'`
	there, err := db.number(ctx, look)
	if err != nil || there == 0 {
		return 0, err
	}
	n, err := db.number(ctx, `SELECT coalesce(max(version), 0) FROM loadgen.migrations`)
	if err != nil {
		return 0, err
	}
	if n > int64(len(migrations)) {
		return 0, fmt.Errorf("the schema loadgen is of version %d, this loadgen knows up to %d: use a newer one", n, len(migrations))
	}
	return int(n), nil
}
