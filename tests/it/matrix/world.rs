//! What there is to ask for. Whatever a cell may change is made for that cell alone.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::askers::{ASKERS, Asker, Role, Token};
use crate::support::{Client, REPO, Reply, Server, uuid};

/// Where an object is, as far as access goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The team `platform` and its repositories.
    Here,
    /// A user's own scope, and its repositories.
    OfUser(&'static str),
    /// Where only the server's administrators may read, of those who ask.
    There,
    /// There is no such scope.
    Nowhere,
}

/// Which scope is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spot {
    Here,
    HereTeam,
    /// The asker's own scope.
    Own,
    OwnRepo,
    /// The writer's own scope.
    Writers,
    There,
    ThereTeam,
    ThereUser,
    Nowhere,
    NowhereTeam,
    NowhereUser,
}

impl Spot {
    pub(super) fn scope(self, asker: &Asker) -> String {
        match self {
            Self::Here => REPO.to_owned(),
            Self::HereTeam => "teams/platform".to_owned(),
            Self::Own => format!("users/{}", asker.user),
            Self::OwnRepo => format!("users/{}/notes", asker.user),
            Self::Writers => "users/wim".to_owned(),
            Self::There => "teams/vault/safe".to_owned(),
            Self::ThereTeam => "teams/vault".to_owned(),
            Self::ThereUser => "users/kim".to_owned(),
            Self::Nowhere => "teams/nothing/x".to_owned(),
            Self::NowhereTeam => "teams/nothing".to_owned(),
            Self::NowhereUser => "users/no-one".to_owned(),
        }
    }

    pub(super) fn place(self, asker: &Asker) -> Place {
        match self {
            Self::Here | Self::HereTeam => Place::Here,
            Self::Own | Self::OwnRepo => Place::OfUser(asker.user),
            Self::Writers => Place::OfUser("wim"),
            Self::There | Self::ThereTeam | Self::ThereUser => Place::There,
            Self::Nowhere | Self::NowhereTeam | Self::NowhereUser => Place::Nowhere,
        }
    }
}

/// Which object is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thing {
    /// One that is there, and another's.
    Others,
    /// The asker's own.
    Mine,
    /// The asker's own, named together with a lock that it doesn't belong to.
    Misplaced,
    /// One that isn't there.
    Absent,
}

/// What kind of object a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// None, or nothing but a scope.
    Scope,
    /// A lock that is free.
    FreeLock,
    /// A lock with its ticket.
    Ticket,
    Thread,
    User,
    Token,
    Team,
    Repo,
    Member,
    Grant,
    Agent,
    /// Of the page of the API.
    File,
}

/// What is asked for, by what names it in paths, bodies and command lines.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) place: Place,
    pub(super) scope: String,
    /// Whether it is a ticket of the asker's own.
    pub(super) is_own: bool,
    pub(super) exists: bool,
    pub(super) values: BTreeMap<&'static str, String>,
}

impl Object {
    pub(super) fn value(&self, name: &str) -> &str {
        self.values.get(name).unwrap_or_else(|| panic!("{self:?} has no {name}"))
    }

    /// Its scope as a parameter: the name and the value.
    pub(super) fn scope_parameter(&self) -> (&'static str, &str) {
        match self.scope.split('/').collect::<Vec<_>>()[..] {
            ["teams", team] => ("team", team),
            ["users", user] => ("user", user),
            _ => ("repo", &self.scope),
        }
    }
}

/// A server, and everyone who asks.
pub(super) struct World {
    pub(super) server: Server,
    pub(super) admin: Client,
    clients: BTreeMap<&'static str, Client>,
    /// Held tickets of each user, until a cell takes them.
    stock: RefCell<BTreeMap<&'static str, Vec<Value>>>,
    made: Cell<u32>,
}

/// How many tickets of each user there are for cells that need one of the asker's own.
const STOCK: usize = 16;

#[track_caller]
fn done(reply: Reply) -> Reply {
    assert!(reply.status < 300, "{}", reply.body);
    reply
}

/// Those of the askers who are users, once each.
fn users() -> impl Iterator<Item = &'static Asker> {
    ASKERS.iter().filter(|asker| asker.token == Token::Good)
}

impl World {
    pub(super) async fn make() -> Self {
        let mut world = Self::of_users().await;
        world.fill_stock().await;
        world.take_away().await;
        world
    }

    /// Everyone, with all the access that they ever have.
    pub(super) async fn of_users() -> Self {
        let server = Server::start();
        let admin = server.client("admin");
        let mut clients = BTreeMap::new();
        let of_vault = json!({ "team": "vault" });
        done(admin.post("/v1/admin/teams", of_vault).await);
        server.add_user("kim").await;
        let in_vault = "/v1/admin/teams/vault/members/kim";
        done(admin.put(in_vault, json!({ "role": "write" })).await);
        for person in users().filter(|asker| asker.person.is_none()) {
            let fields = json!({ "user": person.user, "admin": person.is_server_admin });
            done(admin.post("/v1/admin/users", fields).await);
            clients.insert(person.name, server.add_token(person.user).await);
            let role = match person.here {
                Some(Role::Read) => "read",
                Some(Role::Write) => "write",
                Some(Role::Admin) => "admin",
                None if person.user == "fay" => "write",
                None => continue,
            };
            server.join_team(person.user, role).await;
        }
        let client_of = |clients: &BTreeMap<_, Client>, user: &str| {
            let asker = users().find(|asker| asker.user == user).expect("it is a user");
            clients[asker.name].clone()
        };
        for agent in users() {
            let Some(person) = agent.person else { continue };
            let fields = json!({ "name": "helper" });
            let made = done(client_of(&clients, person).post("/v1/agents", fields).await);
            let token = made.body["token"].as_str().expect("it is shown once");
            clients.insert(agent.name, server.client_with(token));
        }
        for person in users().filter(|asker| asker.person.is_none()) {
            let fields = json!({ "name": "spare" });
            done(clients[person.name].post("/v1/agents", fields).await);
        }
        let own = users().map(|asker| format!("users/{}/notes", asker.user));
        for repo in own.chain(["teams/vault/safe".to_owned()]) {
            done(admin.post("/v1/admin/repos", json!({ "repo": repo })).await);
        }
        for asker in ASKERS.iter().filter(|asker| asker.token != Token::Good) {
            let client = match asker.token {
                Token::Missing => server.client_without_token(),
                Token::Unknown => server.client_with(&foreign_token()),
                Token::Revoked | Token::Good => server.add_token(asker.user).await,
            };
            clients.insert(asker.name, client);
        }
        let (stock, made) = (RefCell::default(), Cell::new(0));
        Self { server, admin, clients, stock, made }
    }

    async fn fill_stock(&mut self) {
        for asker in users() {
            let client = self.client(asker);
            // Whoever may not write here has tickets in its own scope.
            let has_write = asker.here >= Some(Role::Write) || asker.is_server_admin;
            let is_here = has_write || asker.user == "fay";
            let scope = if is_here { REPO.to_owned() } else { format!("users/{}", asker.user) };
            let mut tickets = Vec::new();
            for _ in 0..STOCK {
                tickets.push(self.hold(client, &scope).await);
            }
            self.stock.borrow_mut().insert(asker.user, tickets);
        }
    }

    /// What makes of some askers what they are.
    pub(super) async fn take_away(&self) {
        let revoked = ASKERS.iter().find(|a| a.token == Token::Revoked).expect("one of them is");
        let who = done(self.client(revoked).get("/v1/whoami").await);
        let id = who.body["token_id"].as_str().expect("a token has an id").to_owned();
        done(self.admin.delete(&format!("/v1/admin/tokens/{id}")).await);
        done(self.admin.post("/v1/admin/users/dan/disable", json!({})).await);
        done(self.admin.delete("/v1/admin/teams/platform/members/fay").await);
    }

    /// The client of an asker.
    pub(super) fn client(&self, asker: &Asker) -> &Client {
        &self.clients[asker.name]
    }

    /// The same askers, at the address that the server has after a start.
    pub(super) fn reconnect(&mut self) {
        let again = |client: &Client| match client.token_if_any() {
            Some(token) => self.server.client_with(token),
            None => self.server.client_without_token(),
        };
        self.admin = again(&self.admin);
        let clients = self.clients.iter();
        self.clients = clients.map(|(name, client)| (*name, again(client))).collect();
    }

    /// The last sequence that the ledger has.
    pub(super) async fn head(&self) -> u64 {
        done(self.admin.get("/v1/whoami").await).sequence()
    }

    /// A name that nothing has yet.
    pub(super) fn fresh(&self, what: &str) -> String {
        self.made.set(self.made.get() + 1);
        format!("{what}-{}", self.made.get())
    }

    /// A held ticket of a fresh lock.
    pub(super) async fn hold(&self, client: &Client, scope: &str) -> Value {
        let path = format!("/v1/locks/{}/tickets?{}", self.fresh("lock"), parameter(scope));
        let fields = json!({ "request_uuid": uuid(), "lease_seconds": 300 });
        client.post(&path, fields).await.ticket(201)
    }

    /// What a cell asks for.
    pub(super) async fn object(
        &self,
        asker: &Asker,
        kind: Kind,
        spot: Spot,
        thing: Thing,
    ) -> Object {
        let mut object = Object {
            place: spot.place(asker),
            scope: spot.scope(asker),
            is_own: false,
            exists: thing == Thing::Others || thing == Thing::Mine,
            values: BTreeMap::from([("request_uuid", uuid())]),
        };
        if object.place == Place::Nowhere {
            object.exists = false;
        }
        match kind {
            Kind::Scope => {}
            Kind::FreeLock => object.set("lock_name", self.fresh("lock")),
            Kind::Ticket => self.ticket(&mut object, asker, thing).await,
            Kind::Thread => self.thread(&mut object).await,
            Kind::User => {
                // Whoever administers the server could put itself out of service.
                let is_me = thing == Thing::Mine && !asker.is_server_admin;
                let user = if is_me { asker.user.to_owned() } else { self.user(&object).await };
                object.set("user", user);
            }
            Kind::Token => self.token(&mut object, asker, thing).await,
            Kind::Team if object.exists => object.set("team", "platform".to_owned()),
            Kind::Team => object.set("team", self.fresh("team")),
            Kind::Repo => {
                let existing = if spot == Spot::HereTeam { "website" } else { "safe" };
                let name = if object.exists { existing.to_owned() } else { self.fresh("repo") };
                object.set("repo", format!("{}/{name}", object.scope));
            }
            Kind::Member | Kind::Grant => self.member(&mut object, kind).await,
            Kind::Agent if object.exists => object.set("name", "spare".to_owned()),
            Kind::Agent => object.set("name", self.fresh("agent")),
            Kind::File if object.exists => object.set("file", "index.html".to_owned()),
            Kind::File => object.set("file", self.fresh("file")),
        }
        object
    }

    async fn ticket(&self, object: &mut Object, asker: &Asker, thing: Thing) {
        let has_own = asker.token == Token::Good;
        let is_mine = has_own && matches!(thing, Thing::Mine | Thing::Misplaced);
        let own = is_mine.then(|| self.stock.borrow_mut().get_mut(asker.user)?.pop()).flatten();
        assert!(!is_mine || own.is_some(), "{}: there is no ticket left", asker.name);
        let ticket = match own {
            Some(ticket) => Some(ticket),
            None if object.exists => Some(self.hold(&self.admin, &object.scope).await),
            None => None,
        };
        object.is_own = is_mine && thing == Thing::Mine;
        let text = |ticket: &Value, field: &str| ticket[field].as_str().map(str::to_owned);
        if let Some(ticket) = &ticket {
            object.scope = text(ticket, "scope").expect("a ticket has a scope");
            if object.scope == format!("users/{}", asker.user) {
                object.place = Place::OfUser(asker.user);
            }
        }
        let names = ticket.as_ref().map(|ticket| {
            ["lock_name", "ticket_id", "request_uuid"].map(|field| text(ticket, field))
        });
        let [lock_name, ticket_id, request_uuid] = names.unwrap_or_default();
        let lock_name = lock_name.filter(|_| thing != Thing::Misplaced);
        object.set("lock_name", lock_name.unwrap_or_else(|| self.fresh("lock")));
        object.set("ticket_id", ticket_id.unwrap_or_else(uuid));
        if is_mine {
            object.set("request_uuid", request_uuid.unwrap_or_else(uuid));
        }
        let fence = ticket.as_ref().map_or(1.into(), |ticket| ticket["fence_token"].clone());
        object.set("fence_token", fence.to_string());
    }

    async fn thread(&self, object: &mut Object) {
        let mut number = "999999".to_owned();
        if object.exists {
            let path = format!("/v1/threads?{}", parameter(&object.scope));
            let made = done(self.admin.post(&path, json!({ "title": "work" })).await);
            number = made.body["number"].to_string();
        }
        object.set("number", number);
    }

    /// A user's name: of a fresh user, or of none.
    async fn user(&self, object: &Object) -> String {
        let user = self.fresh("user");
        if object.exists {
            done(self.admin.post("/v1/admin/users", json!({ "user": user })).await);
        }
        user
    }

    async fn token(&self, object: &mut Object, asker: &Asker, thing: Thing) {
        let user = if thing == Thing::Mine { asker.user } else { "claude" };
        let mut token_id = uuid();
        if object.exists {
            let made = self.admin.post("/v1/admin/tokens", json!({ "user": user })).await;
            token_id = done(made).body["token_id"].as_str().expect("a token has an id").to_owned();
        }
        object.set("token_id", token_id);
    }

    /// A user, and its role in the scope if it is to have one.
    async fn member(&self, object: &mut Object, kind: Kind) {
        let team = object.scope.rsplit('/').next().unwrap_or_default().to_owned();
        // An absent one is no user at all.
        let user = self.user(object).await;
        if object.exists {
            let path = match kind {
                Kind::Member => format!("/v1/admin/teams/{team}/members/{user}"),
                _ => format!("/v1/admin/access/{user}?{}", parameter(&object.scope)),
            };
            done(self.admin.put(&path, json!({ "role": "read" })).await);
        }
        object.set("team", team);
        object.set("user", user);
    }
}

impl Object {
    fn set(&mut self, name: &'static str, value: String) {
        self.values.insert(name, value);
    }
}

/// A scope as a query.
fn parameter(scope: &str) -> String {
    match scope.split('/').collect::<Vec<_>>()[..] {
        ["teams", team] => format!("team={team}"),
        ["users", user] => format!("user={user}"),
        _ => format!("repo={scope}"),
    }
}

/// A token that is one, but that no ledger knows.
fn foreign_token() -> String {
    let mut secret = [0; 32];
    pearing::random::fill(&mut secret);
    let token_id = pearing::domain::id::TokenId(pearing::random::uuid());
    pearing::wire::token::format(token_id, &secret)
}
