use super::super::*;
use super::*;

#[test]
fn each_of_the_last_five_batches_is_known_again_and_the_sixth_is_out_of_order() {
    let mut states = ProducerStates::new(0);
    for batch in 0..6 {
        client(&mut states, &data(7, 0, batch * 2, 2, i64::from(batch) * 2));
    }
    for batch in 1..6 {
        let again = data(7, 0, batch * 2, 2, 100);
        let Analysis::Duplicate(found) = states.analyze(&again, Origin::Client).unwrap() else {
            panic!("batch {batch} is not known");
        };
        assert_eq!(found.first_offset(), i64::from(batch) * 2);
        assert_eq!(found.last_offset, i64::from(batch) * 2 + 1);
        assert_eq!(found.timestamp, T0 + i64::from(batch) * 2);
    }
    assert_eq!(
        refused(&states, &data(7, 0, 0, 2, 100), Origin::Client),
        "OUT_OF_ORDER_SEQUENCE_NUMBER: producer 7 (epoch 0) sends sequence 0 at offset 100 after \
         sequence 11"
    );
    // Half a duplicate is none.
    assert!(states.analyze(&data(7, 0, 10, 1, 100), Origin::Client).is_err());
    assert!(states.analyze(&data(7, 0, 9, 2, 100), Origin::Client).is_err());
    // Of another epoch neither.
    assert!(states.analyze(&data(7, 1, 10, 2, 100), Origin::Client).is_err());
}

#[test]
fn only_clients_are_told_of_duplicates_and_sequences() {
    let mut states = ProducerStates::new(0);
    client(&mut states, &data(7, 0, 0, 2, 0));
    for origin in [Origin::Coordinator, Origin::RaftLeader, Origin::Replication] {
        assert_eq!(states.analyze(&data(7, 0, 0, 2, 2), origin).unwrap(), Analysis::New);
        assert_eq!(states.analyze(&data(7, 0, 50, 2, 2), origin).unwrap(), Analysis::New);
    }
}

#[test]
fn sequences_wrap_to_zero() {
    let mut states = ProducerStates::new(0);
    client(&mut states, &data(7, 0, i32::MAX - 1, 4, 0));
    assert_eq!(states.get(7).unwrap().last_sequence(), 1);
    assert!(matches!(
        states.analyze(&data(7, 0, i32::MAX - 1, 4, 9), Origin::Client).unwrap(),
        Analysis::Duplicate(batch) if batch.first_sequence() == i32::MAX - 1
    ));
    assert!(states.analyze(&data(7, 0, 3, 1, 4), Origin::Client).is_err());
    client(&mut states, &data(7, 0, 2, 1, 4));
    let mut states = ProducerStates::new(0);
    client(&mut states, &data(7, 0, i32::MAX, 1, 0));
    assert!(states.analyze(&data(7, 0, 1, 1, 1), Origin::Client).is_err());
    client(&mut states, &data(7, 0, 0, 1, 1));
}

#[test]
fn an_unknown_producer_begins_anywhere_and_a_known_one_does_not() {
    let mut states = ProducerStates::new(0);
    client(&mut states, &data(7, 3, 40, 1, 0));
    assert!(states.analyze(&data(7, 3, 42, 1, 1), Origin::Client).is_err());
    assert_eq!(
        refused(&states, &data(7, 4, 41, 1, 1), Origin::Client),
        "OUT_OF_ORDER_SEQUENCE_NUMBER: producer 7 begins epoch 4 with sequence 41 at offset 1, \
         not with 0 (its epoch was 3)"
    );
    client(&mut states, &data(7, 4, 0, 1, 1));
    assert_eq!(states.get(7).unwrap().batches().count(), 1, "a new epoch forgets the old batches");
    assert_eq!(
        refused(&states, &data(7, 3, 41, 1, 2), Origin::Client),
        "INVALID_PRODUCER_EPOCH: epoch 3 of producer 7 at offset 2 is below the epoch known, 4"
    );
    assert!(states.analyze(&data(7, 3, 41, 1, 2), Origin::Replication).is_ok());
}

#[test]
fn after_a_marker_alone_a_producer_begins_with_zero() {
    let mut states = ProducerStates::new(0);
    append(&mut states, &end(7, 2, 0, false), Origin::Coordinator).unwrap();
    assert!(states.analyze(&data(7, 2, 1, 1, 1), Origin::Client).is_err());
    assert!(states.analyze(&data(7, 2, 0, 1, 1), Origin::Client).is_ok());
}

#[test]
fn several_batches_of_an_append_are_held_to_each_other() {
    let mut states = ProducerStates::new(0);
    client(&mut states, &data(7, 0, 0, 1, 0));
    let mut changes = states.begin(Origin::Client);
    states.add(&mut changes, &data(7, 0, 1, 2, 1)).unwrap();
    assert!(states.add(&mut changes.clone(), &data(7, 0, 2, 1, 3)).is_err());
    states.add(&mut changes, &data(7, 0, 3, 1, 3)).unwrap();
    states.add(&mut changes, &data(-1, -1, -1, 5, 4)).unwrap();
    assert_eq!(states.map_end_offset(), 1, "nothing changes before the commit");
    assert_eq!(states.get(7).unwrap().last_sequence(), 0);
    states.commit(changes);
    assert_eq!(states.map_end_offset(), 9);
    assert_eq!(states.get(7).unwrap().last_sequence(), 3);
    assert_eq!(states.len(), 1);
}

#[test]
fn producers_expire_by_the_time_of_their_records_unless_a_transaction_is_open() {
    let mut states = ProducerStates::new(0);
    client(&mut states, &data(1, 0, 0, 1, 0));
    client(&mut states, &txn(2, 0, 0, 1, 1));
    states.expire(T0 + 999, 1000);
    assert_eq!(states.len(), 2);
    states.expire(T0 + 1000, 1000);
    assert!(states.get(1).is_none());
    states.expire(i64::MAX, 1000);
    assert!(states.get(2).is_some());
    assert!(states.analyze(&data(1, 0, 77, 1, 2), Origin::Client).is_ok());
}

#[test]
fn a_restored_state_knows_one_batch_of_each_producer() {
    let mut states = ProducerStates::new(0);
    client(&mut states, &data(7, 0, 0, 1, 0));
    client(&mut states, &data(7, 0, 1, 1, 1));
    client(&mut states, &txn(8, 5, 0, 1, 2));
    append(&mut states, &end(9, 1, 3, true), Origin::Coordinator).unwrap();
    let mut restored = ProducerStates::new(0);
    restored.restore(&states.snapshot(), 4, T0, 1000);
    assert_eq!(restored.snapshot(), states.snapshot());
    assert_eq!(restored.map_end_offset(), 4);
    assert_eq!(restored.first_unstable_offset(), Some(2));
    let again = |sequence| restored.analyze(&data(7, 0, sequence, 1, 9), Origin::Client);
    assert!(matches!(again(1), Ok(Analysis::Duplicate(_))));
    assert!(again(0).is_err());
    restored.restore(&states.snapshot(), 4, T0 + 5000, 1000);
    assert_eq!(restored.len(), 1, "the one with an open transaction does not expire");
}

#[test]
fn a_guard_is_needed_to_begin_a_transaction() {
    let mut states = ProducerStates::new(0);
    let announced = Announced {
        producer_id: 7,
        producer_epoch: 0,
        base_sequence: 5,
        supports_epoch_bump: false,
    };
    let begin = |guard| Changes::new(Origin::Client).verified(guard);
    let first = txn(7, 0, 5, 1, 0);
    let error = states.add(&mut begin(None), &first).unwrap_err().to_string();
    assert_eq!(
        error,
        "INVALID_TXN_STATE: the transaction of producer 7 (epoch 0) at offset 0 was not verified"
    );
    let guard = states.start_verification(&announced, T0);
    assert!(guard.is_some());
    assert_eq!(states.start_verification(&announced, T0), guard);
    assert!(states.add(&mut begin(None), &first).is_err());
    assert!(states.add(&mut begin(guard), &txn(7, 0, 6, 1, 0)).is_err(), "sequence 5 is missing");
    let mut changes = begin(guard);
    states.add(&mut changes, &first).unwrap();
    states.commit(changes);
    assert_eq!(states.start_verification(&announced, T0), None, "it is open");
    states.add(&mut begin(None), &txn(7, 0, 6, 1, 1)).unwrap();
    append(&mut states, &end(7, 0, 1, false), Origin::Coordinator).unwrap();
    assert!(states.add(&mut begin(guard), &txn(7, 0, 6, 1, 2)).is_err(), "a used guard is void");
    assert!(states.add(&mut begin(None), &data(7, 0, 6, 1, 2)).is_ok());
}

#[test]
fn a_marker_voids_the_guard_of_its_producer() {
    let mut states = ProducerStates::new(0);
    let announced = Announced {
        producer_id: 7,
        producer_epoch: 1,
        base_sequence: 3,
        supports_epoch_bump: true,
    };
    let guard = states.start_verification(&announced, T0);
    let late = |states: &ProducerStates, facts| {
        states.add(&mut Changes::new(Origin::Client).verified(guard), &facts).is_err()
    };
    assert!(late(&states, txn(7, 1, 3, 1, 0)), "epochs that are raised begin with sequence 0");
    append(&mut states, &end(7, 1, 0, true), Origin::Coordinator).unwrap();
    assert!(late(&states, txn(7, 1, 0, 1, 1)));
    let guard = states.start_verification(&announced, T0);
    states.expire(T0 + 1000, 1000);
    assert_ne!(states.start_verification(&announced, T0), guard, "an old question expires");
}
