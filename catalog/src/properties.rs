//! Every property that a catalog, `[storage]` or `iceberg_scan` takes. What is checked and what `docs/configuration.md`
//! says are driven by this table. Names are those that Iceberg's own libraries use, where they have one.

use std::collections::BTreeMap;

use crate::near_names::near_names;

/// One property.
#[derive(Debug)]
pub struct Property {
    /// Its key; one that ends in `*` stands for all that begin so.
    pub key: &'static str,
    /// What holds if it is not given; empty for nothing.
    pub default: &'static str,
    /// One line for the reference.
    pub doc: &'static str,
}

/// Properties that belong together.
#[derive(Debug)]
pub struct PropertyGroup {
    pub title: &'static str,
    /// A sentence or two for the reference.
    pub about: &'static str,
    /// Whether they tell how to reach a store, and not a catalog.
    pub storage: bool,
    pub properties: &'static [Property],
}

const fn property(key: &'static str, default: &'static str, doc: &'static str) -> Property {
    Property { key, default, doc }
}

/// All properties, in the order of the reference.
pub const PROPERTIES: &[PropertyGroup] = &[
    PropertyGroup {
        title: "Any catalog",
        about: "",
        storage: false,
        properties: &[
            property(
                "type",
                "told from `uri`",
                "`rest`, `sql` (also `jdbc`), `hive` or `glue`.",
            ),
            property(
                "uri",
                "",
                "Where the catalog is: `https://…`, `sqlite:/path/to/file`, `postgresql://…`, `thrift://…`.",
            ),
            property(
                "warehouse",
                "",
                "SQL, Hive: where new tables go, below it a folder for each database. REST: the name that the server knows its warehouse by.",
            ),
        ],
    },
    PropertyGroup {
        title: "REST catalogs",
        about: "The Iceberg REST protocol. Storage properties and credentials that the server hands out are used where the catalog \
                has no own ones.",
        storage: false,
        properties: &[
            property("token", "", "Bearer token."),
            property(
                "credential",
                "",
                "`id:secret` for OAuth2 client credentials; tokens are renewed before they end.",
            ),
            property(
                "oauth2-server-uri",
                "`{uri}/v1/oauth/tokens`",
                "Where tokens are bought.",
            ),
            property("scope", "`catalog`", "OAuth2 scope."),
            property("audience", "", "OAuth2 audience."),
            property("resource", "", "OAuth2 resource."),
            property("prefix", "as the server says", "Path below `/v1/`."),
            property("header.*", "", "A header of every request."),
            property(
                "rest.sigv4-enabled",
                "`false`",
                "Sign requests as AWS's services want it (SigV4).",
            ),
            property(
                "rest.signing-name",
                "`execute-api`",
                "The service that is signed for: `glue`, `s3tables`, …",
            ),
            property(
                "rest.signing-region",
                "`client.region`, else as for S3",
                "The region that is signed for.",
            ),
            property(
                "rest.access-key-id",
                "`client.access-key-id`, else as for S3",
                "Keys to sign with.",
            ),
            property("rest.secret-access-key", "", "With `rest.access-key-id`."),
            property("rest.session-token", "", "With `rest.access-key-id`."),
        ],
    },
    PropertyGroup {
        title: "Hive Metastores",
        about: "`thrift://host:9083`, several with commas between. Commits take Hive's lock and name the metadata file that they replace, \
                so they go well with those of Spark, Trino, Flink and Hive. Without Kerberos and TLS so far.",
        storage: false,
        properties: &[
            property(
                "engine.hive.lock-enabled",
                "`true`",
                "Whether commits take Hive's lock. `false` only if the server itself refuses to replace metadata that is not the current one (HIVE-26882: Hive 4.0 and newer).",
            ),
            property(
                "hive.metastore.thrift.framed.transport.enabled",
                "`false`",
                "Framed messages.",
            ),
            property("hive.metastore.use.SSL", "`false`", "`true` is refused."),
            property(
                "hive.metastore.sasl.enabled",
                "`false`",
                "`true` is refused.",
            ),
        ],
    },
    PropertyGroup {
        title: "Glue",
        about: "`type = 'glue'` is Glue's Iceberg REST endpoint, with signatures: a REST catalog of the region's address and \
                `rest.signing-name = 'glue'`. `client.*` keys and region hold for Glue and for S3.",
        storage: false,
        properties: &[
            property(
                "glue.region",
                "`client.region`, else as for S3",
                "Glue's region, and S3's if no other is named.",
            ),
            property(
                "glue.id",
                "the caller's account",
                "Id of the account, or of a catalog in it: the REST property `warehouse`.",
            ),
            property(
                "glue.endpoint",
                "`https://glue.REGION.amazonaws.com`",
                "Another address; `/iceberg` is added. `uri` is taken as it is.",
            ),
            property("glue.access-key-id", "", "Keys for Glue alone."),
            property("glue.secret-access-key", "", "With `glue.access-key-id`."),
            property("glue.session-token", "", "With `glue.access-key-id`."),
        ],
    },
    PropertyGroup {
        title: "SQL catalogs",
        about: "The tables that the SQL catalogs of Iceberg Java (JDBC, schema versions V0 and V1) and PyIceberg use, made if they \
                are not there. `sqlite:/path/to/file` (`?mode=rwc` makes the file), or `postgresql://user:password@host:5432/database`, also \
                as SQLAlchemy (`postgresql+psycopg2://`) and JDBC (`jdbc:postgresql://`) write it; without TLS so far.",
        storage: false,
        properties: &[
            property(
                "catalog-name",
                "the catalog's name",
                "The catalog's name in the database, which may hold several.",
            ),
            property(
                "user",
                "the address's",
                "PostgreSQL: who logs in. Also `jdbc.user`.",
            ),
            property(
                "password",
                "the address's, `PGPASSWORD`, `~/.pgpass`",
                "PostgreSQL. Also `jdbc.password`.",
            ),
            property("jdbc.user", "", "See `user`."),
            property("jdbc.password", "", "See `password`."),
        ],
    },
    PropertyGroup {
        title: "S3, and what speaks its protocol (`s3://`, `s3a://`, `s3n://`)",
        about: "Keys that are not given are looked for as AWS's tools do: in the environment (`AWS_ACCESS_KEY_ID`, …), a web identity, \
                the profile (`AWS_PROFILE`, else `default`) of `~/.aws/credentials` and `~/.aws/config`, the container's or the \
                instance's role; each process looks in its own surroundings.",
        storage: true,
        properties: &[
            property(
                "s3.endpoint",
                "Amazon's",
                "`http://` or `https://` address of another store.",
            ),
            property(
                "s3.region",
                "`AWS_REGION`, `AWS_DEFAULT_REGION`, the profile's, else `us-east-1`",
                "Also `client.region`.",
            ),
            property("s3.access-key-id", "", "Also `client.access-key-id`."),
            property(
                "s3.secret-access-key",
                "",
                "Also `client.secret-access-key`.",
            ),
            property("s3.session-token", "", "Also `client.session-token`."),
            property(
                "s3.profile-name",
                "",
                "Profile of AWS's files; goes before keys in the environment. Also `client.profile-name`.",
            ),
            property("client.profile-name", "", "See `s3.profile-name`."),
            property("client.region", "", "See `s3.region`."),
            property("client.access-key-id", "", "See `s3.access-key-id`."),
            property(
                "client.secret-access-key",
                "",
                "See `s3.secret-access-key`.",
            ),
            property("client.session-token", "", "See `s3.session-token`."),
            property(
                "s3.path-style-access",
                "`true` with an endpoint that is not Amazon's",
                "The bucket in the path, not in the host name.",
            ),
            property(
                "s3.force-virtual-addressing",
                "",
                "The opposite, as PyIceberg calls it.",
            ),
            property(
                "s3.allow-anonymous",
                "`false`",
                "Requests without a signature, for public buckets. Also `s3.anonymous`.",
            ),
            property("s3.anonymous", "", "See `s3.allow-anonymous`."),
            property(
                "s3.allow-http",
                "`true` with an `http://` endpoint",
                "Plain HTTP.",
            ),
            property(
                "s3.sse.type",
                "",
                "`kms` encrypts what is written with the key `s3.sse.key`.",
            ),
            property("s3.sse.key", "", "Id of a KMS key."),
        ],
    },
    PropertyGroup {
        title: "Google Cloud Storage (`gs://`)",
        about: "Without credentials, Google's default ones are looked for: `GOOGLE_APPLICATION_CREDENTIALS`, those of `gcloud`, the \
                machine's.",
        storage: true,
        properties: &[
            property("gcs.oauth2.token", "", "Access token."),
            property(
                "gcs.oauth2.token-expires-at",
                "",
                "Taken and not looked at: a catalog that hands tokens out does so at each load.",
            ),
            property(
                "gcs.credentials-json",
                "",
                "A service account's key, as JSON or as JSON in Base64.",
            ),
            property("gcs.credentials-path", "", "File of credentials."),
            property(
                "gcs.no-auth",
                "`false`",
                "Requests without credentials, for public buckets. Also `gcs.allow-anonymous`.",
            ),
            property("gcs.allow-anonymous", "", "See `gcs.no-auth`."),
            property(
                "gcs.service.host",
                "`https://storage.googleapis.com`",
                "Another address. Also `gcs.service.path`.",
            ),
            property("gcs.service.path", "", "See `gcs.service.host`."),
            property("gcs.project-id", "", "Taken and not needed."),
        ],
    },
    PropertyGroup {
        title: "Azure (`abfss://container@account.dfs.core.windows.net/…`, `wasbs://container@account.blob.core.windows.net/…`, `az://container/…`)",
        about: "Everything is asked of the blob service, over HTTPS. Keys marked with `.*` may end in an account or its host. Without \
                credentials, Azure's variables (`AZURE_STORAGE_ACCOUNT_KEY`, `AZURE_CLIENT_ID`, …) and the machine's identity are \
                looked for.",
        storage: true,
        properties: &[
            property(
                "adls.account-name",
                "the location's, `AZURE_STORAGE_ACCOUNT_NAME`",
                "Account of locations that name none.",
            ),
            property("adls.account-key", "", "Shared key."),
            property(
                "adls.auth.shared-key.account.name",
                "",
                "Account of the next one, as Java's libraries say it.",
            ),
            property("adls.auth.shared-key.account.key", "", "Shared key."),
            property("adls.sas-token", "", "Shared access signature."),
            property("adls.sas-token.*", "", "The same, of one account."),
            property(
                "adls.sas-token-expires-at-ms.*",
                "",
                "Taken and not looked at.",
            ),
            property(
                "adls.connection-string",
                "",
                "Of it: `AccountKey`, `SharedAccessSignature`, `BlobEndpoint`.",
            ),
            property("adls.connection-string.*", "", "The same, of one account."),
            property("adls.token", "", "Bearer token."),
            property(
                "adls.tenant-id",
                "",
                "With the next two: a service principal.",
            ),
            property("adls.client-id", "", "With `adls.tenant-id`."),
            property("adls.client-secret", "", "With `adls.tenant-id`."),
            property(
                "adls.authority-host",
                "Microsoft's",
                "Where a service principal's tokens are bought.",
            ),
            property(
                "adls.anon",
                "`false`",
                "Requests without credentials, for public containers.",
            ),
            property(
                "adls.endpoint",
                "the account's",
                "Another address of the blob service, such as `http://127.0.0.1:10000/devstoreaccount1`.",
            ),
        ],
    },
    PropertyGroup {
        title: "HTTP (`https://`, `http://`)",
        about: "Read only. Any web server will do that answers GET, with ranges, and HEAD; a folder's current metadata file is found by \
                its `version-hint.text`.",
        storage: true,
        properties: &[property(
            "http.header.*",
            "",
            "A header of every request, such as `http.header.Authorization`.",
        )],
    },
];

/// Properties of other engines that would change nothing here.
const WITHOUT_MEANING: [&str; 15] = [
    "catalog-impl",
    "io-impl",
    "py-io-impl",
    "cache-enabled",
    "cache.*",
    "client.factory",
    "jdbc.schema-version",
    "jdbc.verifyServerCertificate",
    "jdbc.useSSL",
    "clients",
    "init_catalog_tables",
    "pool_pre_ping",
    "echo",
    "io.manifest.*",
    "metrics-reporter-impl",
];

fn matches(pattern: &str, key: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => key.len() > prefix.len() && key.starts_with(prefix),
        None => pattern == key,
    }
}

/// Whether a property tells how to reach a store.
pub fn is_storage_property(key: &str) -> bool {
    PROPERTIES
        .iter()
        .filter(|group| group.storage)
        .flat_map(|group| group.properties)
        .any(|property| matches(property.key, key))
}

/// What is wrong with the first property that nobody knows.
pub(crate) fn unknown_property(properties: &BTreeMap<String, String>) -> Option<String> {
    let known = || PROPERTIES.iter().flat_map(|group| group.properties);
    let unknown = properties.keys().find(|key| {
        !known().any(|property| matches(property.key, key))
            && !WITHOUT_MEANING.iter().any(|pattern| matches(pattern, key))
    })?;
    Some(reason(unknown, known()))
}

/// What is wrong with a key that is no storage property.
pub fn unknown_storage_property(key: &str) -> String {
    let known = PROPERTIES.iter().filter(|group| group.storage);
    reason(key, known.flat_map(|group| group.properties))
}

fn reason<'a>(key: &str, known: impl Iterator<Item = &'a Property>) -> String {
    let near = near_names(key, known.map(|property| property.key));
    match near.first() {
        Some(near) => format!("property '{key}' is not known; did you mean '{near}'?"),
        None => format!("property '{key}' is not known"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_unknown(keys: &[&str]) -> Option<String> {
        let properties = keys.iter().map(|key| (key.to_string(), String::new()));
        unknown_property(&properties.collect())
    }

    #[test]
    fn a_property_that_nobody_knows_is_named_with_a_near_one() {
        assert_eq!(
            first_unknown(&["type", "uri", "s3.endpiont"]),
            Some("property 's3.endpiont' is not known; did you mean 's3.endpoint'?".to_string())
        );
        assert_eq!(
            first_unknown(&["frobnicate"]),
            Some("property 'frobnicate' is not known".to_string())
        );
        assert_eq!(
            first_unknown(&["header."]).as_deref(),
            Some("property 'header.' is not known; did you mean 'header.*'?")
        );
    }

    #[test]
    fn properties_of_other_engines_are_let_through() {
        assert_eq!(
            first_unknown(&[
                "header.X-Tenant",
                "io-impl",
                "cache.expiration-interval-ms",
                "warehouse",
                "catalog-name"
            ]),
            None
        );
    }

    #[test]
    fn each_property_is_there_once() {
        let mut keys: Vec<&str> = PROPERTIES
            .iter()
            .flat_map(|group| group.properties)
            .map(|property| property.key)
            .collect();
        keys.sort_unstable();
        let count = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }
}
