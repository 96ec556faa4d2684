package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence"
	"go.temporal.io/server/common/persistence/serialization"
	"go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/resolver"
	"go.temporal.io/server/schema/sqlite"
)

// store is the SQLite database of the server.
type store struct {
	file string // empty: in memory
	sql  *config.SQL
}

// newStore describes the store in a file, or in memory when file is empty.
func newStore(file string) store {
	cfg := &config.SQL{PluginName: sqliteplugin.PluginName}
	if file == "" {
		cfg.DatabaseName = "devserver"
		cfg.ConnectAttributes = map[string]string{"mode": "memory", "cache": "shared"}
	} else {
		cfg.DatabaseName = uriPath(file)
		cfg.ConnectAttributes = map[string]string{"mode": "rwc", "journal_mode": "wal", "synchronous": "normal"}
	}
	return store{file: file, sql: cfg}
}

// uriPath escapes what has a meaning in SQLite's file URIs.
func uriPath(file string) string {
	return strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(filepath.ToSlash(file))
}

// prepare makes the store ready for a server: it creates the tables of a new
// file, then the namespaces and search attributes that are missing. All of it
// happens before the server starts, so that no cache of the server is ever
// without them.
func (s store) prepare(ctx context.Context, namespaces []string, attributes searchAttributes) error {
	if err := s.createTables(); err != nil {
		return s.explain(err)
	}
	for _, name := range namespaces {
		if err := s.ensureNamespace(ctx, name, attributes); err != nil {
			return s.explain(fmt.Errorf("namespace %q: %w", name, err))
		}
	}
	return nil
}

// explain names the flag behind an error of the store, if one is.
func (s store) explain(err error) error {
	if s.file == "" {
		return err
	}
	return fmt.Errorf("--db-filename %s: %w", s.file, err)
}

// createTables sets up a file that is missing or empty. Tables in memory are
// created by the plugin itself.
func (s store) createTables() error {
	if s.file == "" {
		return nil
	}
	info, err := os.Stat(s.file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(s.file)); err != nil {
			return fmt.Errorf("create its directory first: %w", err)
		}
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("that is a directory: give a file in it")
	case info.Size() > 0:
		return nil
	}
	if err := sqlite.SetupSchema(s.sql); err != nil {
		return fmt.Errorf("create the tables: %w", err)
	}
	return nil
}

// ensureNamespace creates a namespace if it is missing and gives it the search
// attributes that it does not have.
func (s store) ensureNamespace(ctx context.Context, name string, attributes searchAttributes) error {
	fresh, err := sqlite.NewNamespaceConfig(clusterName, name, false, nil)
	if err != nil {
		return err
	}
	if err := sqlite.CreateNamespaces(s.sql, fresh); err != nil {
		return fmt.Errorf("%w (is the file a store of this server? delete it to start afresh)", err)
	}
	db, err := sql.NewSQLDB(sqlplugin.DbKindUnknown, s.sql, resolver.NewNoopResolver(), log.NewNoopLogger(), metrics.NoopMetricsHandler)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return addSearchAttributes(ctx, db, name, attributes)
}

// addSearchAttributes writes the missing search attributes into the record of
// a namespace.
func addSearchAttributes(ctx context.Context, db sqlplugin.DB, namespace string, attributes searchAttributes) error {
	rows, err := db.SelectFromNamespace(ctx, sqlplugin.NamespaceFilter{Name: &namespace})
	if err != nil || len(rows) != 1 {
		return fmt.Errorf("read its record (%d found): %w", len(rows), err)
	}
	row, codec := rows[0], serialization.NewSerializer()
	detail, err := codec.NamespaceDetailFromBlob(persistence.NewDataBlob(row.Data, row.DataEncoding))
	if err != nil {
		return fmt.Errorf("decode its record: %w", err)
	}
	aliases, changed, err := attributes.addTo(detail.GetConfig().GetCustomSearchAttributeAliases())
	if err != nil || !changed {
		return err
	}
	detail.Config.CustomSearchAttributeAliases = aliases
	blob, err := codec.NamespaceDetailToBlob(detail)
	if err != nil {
		return fmt.Errorf("encode its record: %w", err)
	}
	row.Data, row.DataEncoding = blob.GetData(), blob.GetEncodingType().String()
	if _, err := db.UpdateNamespace(ctx, &row); err != nil {
		return fmt.Errorf("write its record: %w", err)
	}
	return nil
}
